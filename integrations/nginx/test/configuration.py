"""Bad configurations: each is refused when it is read, with its file, its line and what to write instead."""

import pathlib

ZONE = "tatcell_zone $arg_k zone=a:1m rate=10r/s burst=5;"
USE = "location / { tatcell zone=a; }"

# What is wrong, the http part, the server part, and the words that must be in the error.
BAD = [
    ("zone_without_size", "tatcell_zone $arg_k zone=a rate=1r/s;", "", ["zone=a", "zone=NAME:SIZE"]),
    ("size_is_no_number", "tatcell_zone $arg_k zone=a:x rate=1r/s;", "", ["invalid size", "k or m"]),
    ("zone_too_small", "tatcell_zone $arg_k zone=a:16k rate=1r/s;", "", ["too small", "at least"]),
    ("zone_name_with_a_quote", "tatcell_zone $arg_k 'zone=a\"b:1m' rate=1r/s;", "", ["invalid zone name"]),
    ("zone_without_rate", "tatcell_zone $arg_k zone=a:1m burst=5;", "", ["no rate=", "rate=10r/s"]),
    ("zone_without_zone", "tatcell_zone $arg_k rate=1r/s burst=5;", "", ["no zone=", "zone=clients:1m"]),
    ("rate_of_zero", "tatcell_zone $arg_k zone=a:1m rate=0r/s;", "", ["rate=0r/s", "byte 5,", "above 0"]),
    ("rate_without_time", "tatcell_zone $arg_k zone=a:1m rate=10r;", "", ["rate=10r", 'byte 8, ""', "r/m"]),
    ("rate_of_words", "tatcell_zone $arg_k zone=a:1m rate=fast;", "",
     ['rate=fast" at byte 5, "fast"', "as in rate=10r/s"]),
    ("rate_of_an_unknown_time", "tatcell_zone $arg_k zone=a:1m rate=1.5mB/fortnight;", "",
     ['byte 11, "fortnight"', "r/m"]),
    ("rate_of_65_bits", "tatcell_zone $arg_k zone=a:1m rate=99999999999999999999r/s;", "", ["byte 5"]),
    ("rate_without_end", f"tatcell_zone $arg_k zone=a:1m rate={'1' * 48}r/s;", "", ["byte 52"]),
    ("rate_of_a_zone_that_is_unlimited", "tatcell_zone $arg_k zone=a:1m rate=unlimited;", "",
     ["rate=unlimited", "byte 5"]),
    ("burst_of_zero", "tatcell_zone $arg_k zone=a:1m rate=1r/s burst=0;", "", ["burst=0", "at least 1"]),
    ("burst_of_words", "tatcell_zone $arg_k zone=a:1m rate=1r/s burst=x;", "", ["burst=x", "a number"]),
    ("unknown_policy", "tatcell_zone $arg_k zone=a:1m rate=1r/s policy=evict;", "", ["policy=evict", "inherit"]),
    ("tag_bits_out_of_range", "tatcell_zone $arg_k zone=a:1m rate=1r/s tag_bits=30;", "", ["tag_bits=30", "12 to 24"]),
    ("skew_of_words", "tatcell_zone $arg_k zone=a:1m rate=1r/s skew=long;", "", ["skew=long", "skew=60s"]),
    ("skew_that_no_word_has", "tatcell_zone $arg_k zone=a:1m rate=2047mB/s burst=99 skew=600s;", "", ["cannot hold"]),
    ("counters_without_a_slash", "tatcell_zone $arg_k zone=a:1m rate=1r/s counters=a;", "",
     ["counters=a", "counters=/clients"]),
    ("counters_that_are_none", "tatcell_zone $arg_k zone=a:1m rate=1r/s counters=/dev/null;", "",
     ["counters=/dev/null", "another name"]),
    ("counters_twice_in_two_spellings", "tatcell_zone $arg_k zone=a:1m rate=1r/s counters=/tatcell-twice;\n"
     "tatcell_zone $arg_k zone=b:1m rate=1r/s counters=/dev/shm/tatcell-twice;", "",
     ['zone "a", defined in', "counters=/tatcell-twice", "another name"]),
    ("counters_twice", "tatcell_zone $arg_k zone=a:1m rate=1r/s counters=/tatcell-twice;\n"
     "tatcell_zone $arg_k zone=b:1m rate=1r/s counters=/tatcell-twice;", "",
     ['zone "a", defined in', "counters=/tatcell-twice", "another name"]),
    ("table_without_a_slash", "tatcell_zone $arg_k zone=a:1m rate=1r/s table=a;", "", ["table=a", "table=/clients"]),
    ("table_in_no_folder", "tatcell_zone $arg_k zone=a:1m rate=1r/s table=/no/such/folder;", "",
     ["table=/no/such/folder", "another name"]),
    ("table_twice", "tatcell_zone $arg_k zone=a:1m rate=1r/s table=/tatcell-twice;\n"
     "tatcell_zone $arg_k zone=b:1m rate=1r/s table=/tatcell-twice;", "",
     ['zone "a", defined in', "table=/tatcell-twice", "another name"]),
    ("table_and_counters_in_two_spellings", "tatcell_zone $arg_k zone=a:1m rate=1r/s table=/tatcell-both "
     "counters=/dev/shm/tatcell-both;", "", ["table= and counters= have one name, /tatcell-both"]),
    ("table_and_counters", "tatcell_zone $arg_k zone=a:1m rate=1r/s table=/tatcell-both counters=/tatcell-both;", "",
     ["one name, /tatcell-both"]),
    ("seed_that_is_not_there", "tatcell_zone $arg_k zone=a:1m rate=1r/s seed=/no/such/file;", "",
     ["/no/such/file", "cannot be read"]),
    ("seed_that_is_none", "tatcell_zone $arg_k zone=a:1m rate=1r/s seed=/proc/version;", "",
     ["/proc/version", "32 hexadecimal digits"]),
    ("unknown_parameter", "tatcell_zone $arg_k zone=a:1m rate=1r/s speed=1;", "", ["speed=1", "rate_by="]),
    ("zone_twice", ZONE + "\n" + ZONE, "", ["was defined in", "another name"]),
    ("debt_too_long_for_a_word", "tatcell_zone $arg_k zone=a:1m rate=1r/d burst=2000000;", "",
     ["cannot hold", "tag_bits=16"]),
    ("unknown_zone", ZONE, "location / { tatcell zone=b; }", ["unknown zone \"b\"", "tatcell_zone KEY zone=b"]),
    ("no_zone", ZONE, "location / { tatcell burst=3; }", ["no zone=", "off"]),
    ("same_zone_twice", ZONE, "location / { tatcell zone=a; tatcell zone=a burst=9; }", ["is here twice"]),
    ("delay_above_burst", ZONE, "location / { tatcell zone=a delay=9; }", ["delay=9", "burst=5", "nodelay"]),
    ("delay_of_zero", ZONE, "location / { tatcell zone=a delay=0; }", ["delay=0", "limit_req"]),
    ("cost_of_words", ZONE, "location / { tatcell zone=a cost=much; }", ["cost=much", "a variable"]),
    ("off_beside_a_zone", ZONE, "location / { tatcell zone=a; tatcell off; }", ["remove one"]),
    ("bytes_without_cost", "tatcell_zone $arg_k zone=a:1m rate=1mB/s burst=9;", USE, ["counts bytes", "cost="]),
    ("status_of_success", ZONE, "location / { tatcell zone=a; tatcell_status 200; }", ["400 to 599"]),
    ("unknown_level", ZONE, "location / { tatcell zone=a; tatcell_log_level loud; }", ["invalid value \"loud\""]),
    ("unknown_headers", ZONE, "location / { tatcell zone=a; tatcell_headers all; }", ["invalid value \"all\""]),
    ("headers_off_and_more", ZONE, "location / { tatcell zone=a; tatcell_headers off x; }", ["off"]),
    ("undecided_maybe", ZONE, "location / { tatcell zone=a; tatcell_undecided maybe; }", ["invalid value \"maybe\""]),
    ("stats_format", ZONE, "location / { tatcell_stats xml; }", ["xml", "prometheus"]),
    ("rate_by_of_no_variable", "tatcell_zone $arg_k zone=a:1m rate=1r/s rate_by=x;", "", ["rate_by=x", "$plan_rate"]),
    ("rate_by_of_an_unknown_variable", "tatcell_zone $arg_k zone=a:1m rate=1r/s rate_by=$nowhere;", "",
     ["$nowhere", "not a variable", "tatcell_rates or map"]),
    ("value_of_rates", "tatcell_rates $arg_p $r {\n gold 100r/s;\n silver 10x/s;\n}", "",
     ["10x/s", 'byte 2, "x/s"', "unlimited"]),
    ("burst_of_rates", "tatcell_rates $arg_p $r {\n gold 100r/s burst=0;\n}", "",
     ["burst=0", 'byte 13, "0"', "maybe burst=N"]),
    ("rates_twice", "tatcell_rates $arg_p $r {\n gold 1r/s;\n gold 2r/s;\n}", "", ["twice", "gold"]),
    ("rates_of_other_units",
     "tatcell_rates $arg_p $r {\n gold 1mB/s;\n}\ntatcell_zone $arg_k zone=a:1m rate=1r/s rate_by=$r;", "",
     ["counts bytes", "counts requests"]),
    ("nine_zones",
     "\n".join(f"tatcell_zone $arg_k zone=z{i}:1m rate=1r/s;" for i in range(9)),
     "location / { " + " ".join(f"tatcell zone=z{i};" for i in range(9)) + " }", ["more than 8 zones"]),
]


def claims(claims, server):
    def refused(http, location, words):
        with server() as n:
            good, said = n.test(http=http, server=location)
            assert not good, "it was taken"
            for word in [*words, "nginx.conf:"]:
                assert word in said, f"no {word!r} in {said!r}"

    for name, http, location, words in BAD:
        claims.claim(f"configuration_{name}_is_refused_with_its_line", lambda: refused(http, location, words))

    def good():
        with server() as n:
            taken, said = n.test(
                http="""tatcell_rates $arg_p $rate { default 10r/s; gold 100r/s burst=99; ~^test 1r/m; free unlimited;
                        half 0.5/s; words 5/15min burst 20; }
                    tatcell_zone $arg_k$uri zone=a:1m rate=10r/s burst=5 rate_by=$rate policy=inherit tag_bits=16;
                    tatcell_zone $binary_remote_addr zone=b-1.x:256k rate=5mB/s burst=10000000 policy=deny;
                    tatcell_zone $arg_k zone=d:1m "rate=1.5MB/s burst 64kB" burst=99;
                    tatcell_zone $arg_k zone=c:1m rate=1r/h burst=100 policy=sampled;""",
                server="""tatcell zone=a; tatcell_headers ratelimit policy retry_after x;
                    location / { tatcell zone=a delay=2; tatcell zone=b-1.x nodelay cost=$request_length;
                        tatcell zone=c burst=7 cost=2; tatcell_dry_run on; tatcell_status 503;
                        tatcell_log_level info; tatcell_log_interval 100ms; tatcell_undecided refuse; }
                    location /off { tatcell off; }
                    location /stats { tatcell_stats prometheus top=0; }""")
            assert taken, said
    claims.claim("configuration_with_everything_is_taken", good)

    def documents():
        with server() as n:
            pages = [pathlib.Path(__file__).resolve().parents[1] / name for name in ("README.md", "MOVING.md")]
            found = [result for page in pages for result in n.documented(page)]
            assert len(found) == 5, f"{len(found)} configurations"
            for taken, said in found:
                assert taken, said
    claims.claim("configurations_of_the_documents_are_taken", documents)
