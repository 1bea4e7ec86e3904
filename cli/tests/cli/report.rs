//! `tatcell plan --report`: the page has the numbers of the JSON, nothing from a network, and everybody can read it.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::folder;
use crate::logs::incident;
use crate::program::PROGRAM;

/// The page and the JSON of one plan.
fn both(file: &Path, arguments: &[&str]) -> (String, Value) {
    let page = file.with_extension("html");
    let output = Command::new(PROGRAM)
        .args([
            "plan",
            file.to_str().expect("a name"),
            "--slots",
            "8192",
            "--json",
            "--report",
            page.to_str().expect("a name"),
        ])
        .args(arguments)
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    (fs::read_to_string(page).expect("a page"), serde_json::from_slice(&output.stdout).expect("JSON"))
}

fn of_incident(name: &str) -> (PathBuf, String, Value) {
    let file = folder(name).join("access.log");
    fs::write(&file, incident().combined()).expect("a file");
    let limits = ["-l", "5/s burst 20", "-l", "1/s burst 60", "-l", "5/s burst 20 and /24,56 20/s burst 100"];
    let (page, json) = both(&file, &limits);
    (file.with_extension("html"), page, json)
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

/// The rows of the body of a table.
fn rows(page: &str, id: &str) -> Vec<Vec<String>> {
    let (_, table) =
        page.split_once(&format!("<table id=\"{id}\">")).unwrap_or_else(|| panic!("no table {id}"));
    let (table, _) = table.split_once("</tbody>").expect("an end");
    let (_, body) = table.split_once("<tbody>").expect("a body");
    let cells = |row: &str| {
        let ends = row.replace("</th>", "</td>").replace("<th scope=\"row\">", "<td>");
        ends.split("</td>")
            .filter_map(|cell| cell.split_once("<td>"))
            .map(|(_, text)| unescape(text))
            .collect()
    };
    body.split("</tr>").filter(|row| row.contains("<tr>")).map(cells).collect()
}

fn numbers(value: &Value) -> Vec<String> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(|value| value.as_str().map_or(value.to_string(), Into::into))
        .collect()
}

#[test]
fn the_page_has_the_numbers_of_the_json() {
    let (_, page, json) = of_incident("report");
    let limits = json["limits"].as_array().expect("limits");
    assert_eq!(limits.len(), 3);
    for (at, limit) in limits.iter().enumerate() {
        let line = &limit["timeline"];
        let (starts, came, refused) =
            (numbers(&line["starts"]), numbers(&line["came"]), numbers(&line["refused"]));
        let found = rows(&page, &format!("timeline-{at}"));
        assert_eq!(found.len(), starts.len());
        for (part, row) in found.iter().enumerate() {
            let number = |text: &String| text.parse::<u64>().expect("a number");
            let admitted = number(&came[part]) - number(&refused[part]);
            let want =
                [starts[part].clone(), came[part].clone(), admitted.to_string(), refused[part].clone()];
            assert_eq!(row[..], want, "part {part}");
        }
        let sum =
            |list: &[String]| list.iter().map(|text| text.parse::<u64>().expect("a number")).sum::<u64>();
        assert_eq!(Some(sum(&came)), json["input"]["records"].as_u64(), "every record is in one part");
        assert_eq!(Some(sum(&refused)), limit["refused"].as_u64());
        let hours: Vec<_> = limit["hours"]["keys"].as_array().expect("keys").iter().collect();
        let found = rows(&page, &format!("hours-{at}"));
        assert_eq!(found.len(), hours.len());
        for (row, key) in found.iter().zip(hours) {
            assert_eq!(
                (&row[0], &row[1..]),
                (&numbers(&Value::Array(vec![key["key"].clone()]))[0], &numbers(&key["refused"])[..])
            );
        }
        // All refusals of a key are in one of its parts.
        for (row, top) in found.iter().zip(limit["top_refused"].as_array().expect("keys")) {
            assert_eq!(
                (Some(&*row[0]), Some(sum(&row[1..]))),
                (top["key"].as_str(), top["refused"].as_u64())
            );
        }
        let keys: u64 = rows(&page, &format!("peaks-{at}"))
            .iter()
            .map(|row| row[1].parse::<u64>().expect("a number"))
            .sum();
        assert_eq!(Some(keys), json["input"]["keys"].as_u64());
        assert!(page.contains(limit["limit"].as_str().expect("a limit")));
        // Of several limits each has a row, with the size of its own table.
        let links = limit["links"].as_array().expect("links");
        if !links.is_empty() {
            for (row, link) in rows(&page, &format!("links-{at}")).iter().zip(links) {
                let (table, name) = (&link["table"], link["limit"].as_str().expect("a limit"));
                let want = [
                    &link["refused"],
                    &table["peak_live"],
                    &table["met_full_set"],
                    &table["recommended_bytes"],
                ];
                assert_eq!((&*row[0], &row[1..]), (name, &want.map(Value::to_string)[..]));
            }
            assert!(links.len() == 2 && rows(&page, &format!("links-{at}")).len() == 2);
        }
    }
    for (row, rate) in rows(&page, "rates").iter().zip(json["rates"].as_array().expect("rates")) {
        let names = ["rate", "p50", "p90", "p99", "p999", "max", "uncertain", "smallest", "smallest_hits"];
        let want: Vec<_> =
            names.iter().map(|name| numbers(&Value::Array(vec![rate[*name].clone()]))[0].clone()).collect();
        assert_eq!(*row, want);
    }
    for (row, key) in rows(&page, "curves").iter().zip(json["neediest"].as_array().expect("keys")) {
        assert_eq!(
            (Some(&*row[0]), &row[1..row.len() - 1]),
            (key["key"].as_str(), &numbers(&key["needed"])[..])
        );
    }
    let peaks = json["rates"][3]["peaks"].as_array().expect("peaks");
    assert_eq!(peaks.first().map(|peak| &peak["burst"]), Some(&1.into()));
}

/// What a reader of HTML takes: each element is closed, names are there once, and what refers to one finds it.
/// Returns how many refer to one.
fn well_formed(page: &str) -> usize {
    let (mut open, mut ids, mut uses) = (Vec::new(), HashSet::new(), Vec::new());
    for part in page.split('<').skip(1) {
        let (tag, _) = part.split_once('>').unwrap_or_else(|| panic!("<{part} is not closed"));
        let name = tag.split([' ', '/']).next().unwrap_or("");
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "</{name}>");
        } else if !tag.starts_with('!') && !tag.ends_with('/') && name != "meta" {
            open.push(name);
        }
        for (text, list) in [(" id=\"", true), ("aria-labelledby=\"", false), ("href=\"#", false)] {
            let Some((_, rest)) = tag.split_once(text) else { continue };
            let value = rest.split('"').next().unwrap_or("");
            match list {
                true => assert!(ids.insert(value), "two elements are {value}"),
                false => uses.extend(value.split(' ')),
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    uses.iter().for_each(|id| assert!(ids.contains(id), "nothing is {id}"));
    uses.len()
}

#[test]
fn the_page_stands_alone_and_is_read_without_a_picture() {
    let (_, page, _) = of_incident("report-alone");
    for outside in ["<script", "http:", "https:", "url(", "src=", "@import", "<link", "<iframe"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(well_formed(&page) > 10);
    assert!(page.contains("lang=\"en\"") && page.contains("prefers-color-scheme:dark"));
    // Each picture has a title, a description and a table.
    let pictures = page.matches("<svg ").count();
    assert_eq!(
        (page.matches("role=\"img\"").count(), page.matches("<summary>").count()),
        (pictures, pictures)
    );
    assert!(pictures == 10, "{pictures} pictures");
    for bad in ["NaN", "inf ", "inf\"", "width=\"-", "height=\"-"] {
        assert!(!page.contains(bad), "{bad}");
    }
}

/// The relative luminance of WCAG of a colour as browsers compute it: `rgb(1, 2, 3)`.
fn luminance(colour: &str) -> f64 {
    let parts = colour.trim_start_matches("rgb(").trim_end_matches(')').split(", ");
    let parts = parts.map(|part| part.parse::<f64>().unwrap_or_else(|_| panic!("{colour}")) / 255.0);
    let linear = |part: f64| if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) };
    parts.map(linear).zip([0.2126, 0.7152, 0.0722]).map(|(part, weight)| part * weight).sum()
}

/// Pages on which names and numbers have little room.
fn crowded(folder: &Path) -> Vec<PathBuf> {
    let seconds = |count: u64| -> String {
        let lines = (0..count).map(|at| format!("{},ann,1\n", 1_700_000_010 + at));
        lines.collect()
    };
    let largest = format!("1700000000,ann,{}\n", u64::MAX).repeat(2);
    let near = (0..6).flat_map(|at| ["-l".to_owned(), format!("{}/s burst 1", 1.0 + f64::from(at) / 100.0)]);
    let pages: [(_, _, Vec<String>); 3] = [
        ("near", seconds(19), near.collect()),
        ("far", seconds(30), ["-l", "1/d burst 1", "-l", "100000/s burst 1"].map(Into::into).into()),
        ("largest", largest, ["-c", "cost", "-r", "1000000000/s", "-r", "1/s"].map(Into::into).into()),
    ];
    let page = |(name, lines, arguments): (&str, String, Vec<String>)| {
        let file = folder.join(name).with_extension("csv");
        fs::write(&file, format!("time,user,cost\n{lines}")).expect("a file");
        let arguments = arguments.iter().map(String::as_str);
        both(&file, &["-k", "user"].into_iter().chain(arguments).collect::<Vec<_>>());
        file.with_extension("html")
    };
    pages.map(page).into()
}

/// A page with names of wide and of narrow letters that are too long for its pictures, and curves next to each other.
fn with_long_names(file: &Path) -> PathBuf {
    let wide = ["W", "m", "@", "a", "0", "x=1&", "\u{4f60}", "i.", "~>"].map(|letters| letters.repeat(60));
    let narrow = ["2001:db8:fedc:ba98:7654:3210:fedc:ba98".to_owned(), "A".repeat(21)];
    let mut text = String::from("time,user\n");
    for name in wide.iter().chain(&narrow) {
        text += &format!("1700000000,{name}\n").repeat(9);
    }
    // At the lowest rate every other of these needs 3, and else 2.
    for at in 0..8 {
        text += &format!("1700000000,name{at}\n").repeat(2);
        text += &format!("1700000001,name{at}\n").repeat(at % 2);
    }
    fs::write(file, text).expect("a file");
    let limits = ["-l", "1/s burst 3", "-l", "1/s burst 4", "-l", "50/s burst 50", "-l", "1/min burst 2"];
    let (page, _) = both(file, &[&["-k", "user", "--top", "20"][..], &limits].concat());
    // The name of the limit with the larger burst is the upper one, as its diamond is.
    let line = |limit: &str| {
        let (before, _) =
            page.split_once(&format!("\" text-anchor=\"start\">{limit}</text>")).expect("a name");
        before.rsplit('"').next().expect("a place").parse::<f64>().expect("a number")
    };
    assert!(line("1/s burst 4") < line("1/s burst 3"));
    file.with_extension("html")
}

/// What a browser makes of the page: its numbers are those of the JSON, the keyboard reaches everything in the order in
/// which it stands there, and what is written and drawn has contrast in light and dark.
#[test]
fn a_browser_shows_the_numbers_to_everybody() {
    let (file, _, json) = of_incident("report-browser");
    let is_there = |name: &&str| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|folder| folder.join(name).is_file())
    };
    let Some(browser) = ["chromium", "google-chrome"].into_iter().find(is_there) else {
        println!("SKIP a_browser_shows_the_numbers: no headless browser is there: apt-get install chromium");
        return;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/browser.py");
    let output = Command::new("python3")
        .arg("-B")
        .arg(script)
        .args([browser.as_ref(), file.with_extension("profile").as_os_str(), file.as_os_str()])
        .arg(with_long_names(&file.with_file_name("names.csv")))
        .args(crowded(file.parent().expect("a folder")))
        .output()
        .expect("python3");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let shown: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(shown["console"], Value::Array(Vec::new()));
    assert_eq!(shown["outside"], Value::Array(Vec::new()));

    // Tables: each number of the JSON is in its cell.
    let cells = |id: &str| -> Vec<Vec<String>> {
        shown["tables"][id]
            .as_array()
            .unwrap_or_else(|| panic!("no table {id}"))
            .iter()
            .map(numbers)
            .collect()
    };
    let list = |value: &Value| value.as_array().expect("a list").clone();
    for (at, limit) in list(&json["limits"]).iter().enumerate() {
        let line = &limit["timeline"];
        let parts: Vec<_> = cells(&format!("timeline-{at}"))
            .into_iter()
            .map(|row| [row[0].clone(), row[1].clone(), row[3].clone()])
            .collect();
        let want =
            numbers(&line["starts"]).into_iter().zip(numbers(&line["came"])).zip(numbers(&line["refused"]));
        assert_eq!(parts, want.map(|((start, came), refused)| [start, came, refused]).collect::<Vec<_>>());
        let want = list(&limit["hours"]["keys"]);
        let want = want
            .iter()
            .map(|key| [vec![key["key"].as_str().expect("a key").into()], numbers(&key["refused"])].concat());
        assert_eq!(cells(&format!("hours-{at}")), want.collect::<Vec<Vec<String>>>());
    }
    let peaks: Vec<_> = list(&json["rates"][3]["peaks"])
        .iter()
        .map(|peak| vec![peak["burst"].to_string(), peak["keys"].to_string()])
        .collect();
    assert_eq!(cells("peaks-0"), peaks);
    for (row, rate) in cells("rates").iter().zip(list(&json["rates"])) {
        let names = ["p50", "p90", "p99", "p999", "max", "uncertain", "smallest", "smallest_hits"];
        assert_eq!(row[1..], names.map(|name| rate[name].to_string()));
    }
    let curves = list(&json["neediest"]);
    assert!(cells("curves").len() == curves.len() && curves.len() == 10);
    for (row, key) in cells("curves").iter().zip(&curves) {
        assert_eq!(row[1..row.len() - 1], numbers(&key["needed"]));
    }

    // The keyboard: each press goes further down the page, and a frame shows where it is.
    let tabs = list(&shown["tabs"]);
    let places: Vec<_> = tabs.iter().map(|tab| tab[0].as_i64().expect("a place")).collect();
    assert!(tabs.len() > 20 && places.is_sorted_by(|a, b| a < b), "{tabs:?}");
    assert!(tabs.iter().all(|tab| tab[3] == true), "{tabs:?}");
    let names: HashSet<_> = tabs.iter().map(|tab| tab[1].as_str().expect("a name")).collect();
    assert_eq!(names, HashSet::from(["a", "div", "figure", "summary"]), "{tabs:?}");

    // Colours, as WCAG 2 has it: AA for what is written, 3 for what is drawn. A line of a grid is decoration.
    let schemes = ["light", "dark"].map(|scheme| list(&shown["schemes"][scheme]));
    assert_ne!(schemes[0], schemes[1]);
    for colours in schemes {
        let mut kinds = HashSet::new();
        for colour in &colours {
            let [kind, over, under] = [0, 1, 2].map(|at| colour[at].as_str().expect("a colour"));
            let least = match kind {
                "text" => 4.5,
                "drawing" => 3.0,
                _ => 1.3,
            };
            let (a, b) = (luminance(over), luminance(under));
            let contrast = (a.max(b) + 0.05) / (a.min(b) + 0.05);
            assert!(contrast >= least, "{kind} {over} on {under}: {contrast:.2}");
            kinds.insert(kind);
        }
        assert!(kinds.len() == 3 && colours.len() >= 6, "{colours:?}");
    }
}

#[test]
fn the_picture_alone_is_that_of_the_page() {
    let file = folder("report-picture").join("access.log");
    fs::write(&file, incident().combined()).expect("a file");
    let picture = file.with_extension("svg");
    let output = Command::new(PROGRAM)
        .args(["plan", file.to_str().expect("a name"), "-l", "5/s burst 20", "--report"])
        .arg(&picture)
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let picture = fs::read_to_string(picture).expect("a picture");
    well_formed(&picture);
    assert!(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox"), "{picture}");
    assert!(picture.contains(">5/s burst 20: 8985 of 101135 refused</text>"), "{picture}");
    let (page, _) = both(&file, &["-l", "5/s burst 20"]);
    let bars = |text: &str| {
        let (_, first) = text.split_once("<svg").expect("a picture");
        let (first, _) = first.split_once("</svg>").expect("its end");
        first.lines().filter(|line| line.starts_with("<g>")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(bars(&picture) == bars(&page) && bars(&page).len() > 50);
}

#[test]
fn names_from_the_input_are_only_text() {
    let file = folder("report-names").join("log.csv");
    let mut text = String::from("time,user\n");
    for number in 0..30 {
        text += &format!("{},\"<script>alert('1')</script> & \"\"co\"\"\"\n", 1_700_000_000 + number / 10);
    }
    fs::write(&file, text).expect("a file");
    let (page, json) = both(&file, &["-k", "user", "-l", "1/s burst 3"]);
    well_formed(&page);
    assert!(!page.contains("<script"));
    let key = json["limits"][0]["top_refused"][0]["key"].as_str().expect("a key");
    assert_eq!(rows(&page, "hours-0")[0][0], key);
}

#[test]
fn names_that_are_cut_stay_apart() {
    let file = folder("report-cut").join("log.csv");
    let mut text = String::from("time,user\n");
    for at in 3..7 {
        text += &format!("1700000000,/static/app/images/202{at}/big/photo-large-1.jpg\n").repeat(9);
    }
    fs::write(&file, text).expect("a file");
    let (page, _) = both(&file, &["-k", "user", "-l", "1/s burst 3"]);
    let (_, picture) = page.split_once("aria-labelledby=\"hours-0-title").expect("a picture");
    let (picture, _) = picture.split_once("</svg>").expect("its end");
    let names = picture.lines().filter_map(|line| line.split_once("\"end\">"));
    let names: HashSet<_> = names.map(|(_, name)| name).collect();
    assert_eq!(names.len(), 4, "{names:?}");
}

#[test]
fn a_sample_of_which_no_key_is_hit_is_called_so() {
    let file = folder("report-sample").join("log.csv");
    let lines: String = (0..400).map(|at| format!("{},user{at}\n", 1_700_000_000 + at)).collect();
    fs::write(&file, format!("time,user\n{lines}")).expect("a file");
    let (page, json) = both(&file, &["-k", "user", "--max-keys", "100", "-l", "1/s burst 5"]);
    assert!(json["input"]["one_in"].as_u64() > Some(1), "{json}");
    assert!(page.contains("it refuses no key of the sample. "), "{page}");
}

#[test]
fn the_page_says_how_the_input_was_read() {
    let file = folder("report-notes").join("log.csv");
    let mut text = String::from("time,user,units\n");
    (0..200).for_each(|at| text += &format!("{},ann,2\n", 1_700_000_010 + at / 20));
    text += "never,ann,2\n1700000001,ann,2\n";
    fs::write(&file, text).expect("a file");
    let (page, _) =
        both(&file, &["-k", "user", "-c", "units", "-r", "5/s", "-l", "5/s burst 500", "-g", "ann"]);
    well_formed(&page);
    for want in [
        "<p>The field units says what a record costs.</p>",
        "<p>Times are whole seconds",
        "<p>1 record came later than --sort allows",
        "<p>1 record could not be read.</p>",
        "log.csv:202:1: no time: &quot;never&quot;</p>",
        "<p>Good key ann (201 records) needs 5/s burst 357.</p>",
    ] {
        assert!(page.contains(want), "{want}\n{page}");
    }
    // Parts of a second: their starts are not all the same minute.
    assert!(page.contains(">22:13:30</text>"), "{page}");
}

#[test]
fn the_largest_cost_has_a_page() {
    let file = folder("report-cost").join("log.csv");
    let line = format!("1700000000,ann,{}\n", u64::MAX);
    fs::write(&file, format!("time,user,cost\n{line}{line}")).expect("a file");
    // At this rate a unit takes a nanosecond, so the burst is the whole number.
    let (page, json) = both(&file, &["-k", "user", "-c", "cost", "--rate", "1000000000/s"]);
    well_formed(&page);
    assert_eq!(json["rates"][0]["max"], u64::MAX, "{json}");
}
