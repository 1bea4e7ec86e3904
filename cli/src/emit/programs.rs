//! Configurations of programs.

use super::{in_comment, Numbers, Wanted};
use crate::key::Part;

/// Why a program takes no address from a field. The plan counts by the last address of a list, which the nearest proxy
/// wrote. A program that takes the first address, or the whole list, lets a client choose its key.
fn no_address(program: &str, field: &str) -> String {
    format!(
        "{program} takes no address from {field}: use --key address, and let {program} find the client behind a proxy"
    )
}

/// Variables of nginx that have their value when a limit decides; and the start of the names of those that a request
/// names.
const VARIABLES: [&str; 25] = [
    "args",
    "binary_remote_addr",
    "connection",
    "content_length",
    "content_type",
    "document_uri",
    "host",
    "hostname",
    "https",
    "msec",
    "proxy_protocol_addr",
    "query_string",
    "realip_remote_addr",
    "remote_addr",
    "remote_port",
    "remote_user",
    "request",
    "request_method",
    "request_uri",
    "scheme",
    "server_addr",
    "server_name",
    "server_port",
    "server_protocol",
    "uri",
];
const STARTS: [&str; 4] = ["arg_", "cookie_", "http_", "ssl_"];

/// What nginx calls a part of a key; and the map that makes it, if it needs one.
fn of_nginx(field: &str, part: &Part) -> Result<(String, String), String> {
    let plain = |name: &str| Ok((format!("${name}"), String::new()));
    let is_word = field.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    let is_known =
        VARIABLES.contains(&field) || is_word && STARTS.iter().any(|start| field.starts_with(start));
    let name = match field {
        "address" => "binary_remote_addr",
        "path" => "request_uri",
        "method" => "request_method",
        "user_agent" => "http_user_agent",
        name if is_known => name,
        name => {
            return Err(format!(
                "tatcell does not know that nginx has {name:?} when a limit decides: use another key"
            ))
        }
    };
    match part {
        Part::Address { .. } if field != "address" => Err(no_address("nginx", field)),
        Part::Address { v4: 32, v6: 128 } | Part::Text => plain(name),
        // The path as the client wrote it, which is what a log has: $uri is decoded, and may be rewritten.
        Part::Path { segments: usize::MAX } => {
            let map = "map $request_uri $tatcell_path {\n    \"~^(?<tatcell_path_is>[^?#]*)\" $tatcell_path_is;\n    \
                default $request_uri;\n}\n";
            Ok(("$tatcell_path".into(), map.into()))
        }
        Part::Path { segments } => {
            // A brace in a regular expression of nginx needs quotes.
            let map = format!("map $request_uri $tatcell_path{segments} {{\n    \
                \"~^(?<tatcell_path{segments}_is>(/[^/?#]*){{1,{segments}}})\" \
                $tatcell_path{segments}_is;\n    default $request_uri;\n}}\n");
            Ok((format!("$tatcell_path{segments}"), map))
        }
        Part::Pattern(_) => {
            Err("a pattern of paths is a location in nginx: use another key, and put the limit there".into())
        }
        Part::Address { v4, v6: 128 } if [8, 16, 24].contains(v4) => {
            let more = r"\.\d+".repeat(usize::from(v4 / 8 - 1));
            let map = format!("map $remote_addr $tatcell_network{v4} {{\n    \
                ~^(?<tatcell_network{v4}_is>\\d+{more})\\. \
                $tatcell_network{v4}_is;\n    default $remote_addr;\n}}\n");
            Ok((format!("$tatcell_network{v4}"), map))
        }
        Part::Address { v4, v6 } => Err(format!(
            "nginx cuts no address to {v4} and {v6} bits: use address, or address/24, /16 or /8 with whole addresses \
             of IPv6"
        )),
    }
}

/// The lines of a limit in nginx: maps and a zone in http, and what stands where the limit applies.
pub(super) struct Zone {
    pub(super) maps: String,
    pub(super) zone: String,
    pub(super) place: String,
}

impl Wanted<'_> {
    pub(super) fn nginx(&self, numbers: &Numbers) -> Result<String, String> {
        let Zone { maps, zone, place } = self.zone("clients", numbers)?;
        Ok(format!(
            "{}# Include it in http, and put the last line where the limit is to apply.\n{maps}{zone}{place}",
            self.head("#")
        ))
    }

    /// Writes one zone of nginx.
    pub(super) fn zone(&self, name: &str, numbers: &Numbers) -> Result<Zone, String> {
        let (mut keys, mut maps) = (Vec::new(), String::new());
        for (field, part) in self.key.fields().iter().zip(self.key.parts()) {
            let (key, map) = of_nginx(field, part)?;
            if !map.is_empty() && keys.contains(&key) {
                return Err(format!("two parts of the key would both be {key}: use one of them"));
            }
            keys.push(key);
            maps += &map;
        }
        let cost = match self.cost {
            None => String::new(),
            Some("request_length") => " cost=$request_length".into(),
            Some(cost) => return Err(format!("nginx decides before it knows {cost}: leave --cost out")),
        };
        // What stands before the slots takes less than 96k, which the module asks for at least.
        let size = (self.slots * 8).div_ceil(1024) + 96;
        let (rate, burst, policy) = (numbers.rate("r"), numbers.burst, self.policy());
        let key = keys.join(":");
        Ok(Zone {
            maps,
            zone: format!(
                "tatcell_zone {key} zone={name}:{size}k rate={rate} burst={burst} policy={policy};\n"
            ),
            place: format!("tatcell zone={name} nodelay{cost};\n"),
        })
    }

    pub(super) fn envoy(&self, numbers: &Numbers) -> Result<String, String> {
        self.costs_one()?;
        let Numbers { units, seconds, burst } = *numbers;
        // A rule passes as many at once as in its unit of time.
        let of = |unit: u64| {
            let all = u128::from(units) * u128::from(unit);
            let requests = all.is_multiple_of(seconds.into()).then(|| all / u128::from(seconds))?;
            u32::try_from(requests).ok().map(u64::from)
        };
        let units_of_time =
            [("second", 1), ("minute", 60), ("hour", 3_600), ("day", 86_400), ("week", 604_800)];
        let exact: Vec<_> =
            units_of_time.into_iter().filter_map(|(name, unit)| Some((name, of(unit)?))).collect();
        let Some((unit, _)) = exact.iter().find(|(_, requests)| *requests == burst) else {
            let near = exact.iter().take(3).map(|(name, n)| format!("\"{n}/{name}\" (burst {n})"));
            let near = near.collect::<Vec<_>>().join(", ");
            let help = match &*near {
                "" => "no unit of time has a whole number of requests: plan with another rate".into(),
                near => format!("it can have {near}: plan with one of these"),
            };
            return Err(format!(
                "a rule passes as many at once as in its unit of time, so it cannot have {} and a burst of {burst}; \
                 at this rate {help}",
                numbers.rate("")
            ));
        };
        let (mut actions, mut rules, mut indent) =
            (String::new(), String::from("domain: edge\n"), String::new());
        for (field, part) in self.key.fields().iter().zip(self.key.parts()) {
            let name = match part {
                Part::Address { .. } if field != "address" => return Err(no_address("Envoy", field)),
                Part::Address { v4: 32, v6: 128 } => {
                    actions += "# remote_address: {}\n";
                    "remote_address"
                }
                Part::Address { v4, v6 } => {
                    // Without lengths Envoy sends whole addresses.
                    actions += &format!(
                        "# masked_remote_address: {{v4_prefix_mask_len: {v4}, v6_prefix_mask_len: {v6}}}\n"
                    );
                    "masked_remote_address"
                }
                Part::Path { segments: usize::MAX } | Part::Text => field,
                _ => return Err("Envoy sends whole paths: use --key path".into()),
            };
            rules += &format!("{indent}descriptors:\n{indent}  - key: {name:?}\n");
            indent += "    ";
        }
        rules +=
            &format!("{indent}rate_limit:\n{indent}  unit: {unit}\n{indent}  requests_per_unit: {burst}\n");
        let mut text = self.head("#") + "# Envoy's own configuration sends descriptors of these keys";
        text += if actions.is_empty() { ".\n" } else { "; for an address:\n" };
        Ok(text + &actions + &rules)
    }

    pub(super) fn haproxy(&self, numbers: &Numbers) -> Result<String, String> {
        self.costs_one()?;
        let (fields, parts) = (self.key.fields(), self.key.parts());
        let ([field], [part]) = (fields, parts) else {
            return Err("it counts by one thing: use a key of one part".into());
        };
        let key = match part {
            Part::Address { v4, v6 } if field == "address" => format!("src,ipmask({v4},{v6})"),
            Part::Address { .. } => return Err(no_address("HAProxy", field)),
            Part::Path { segments: usize::MAX } => "path".into(),
            Part::Text if field == "method" || field == "path" => field.clone(),
            Part::Text if field == "host" => "req.hdr(host)".into(),
            Part::Text => match field.strip_prefix("http_") {
                // The whole header, as the plan counts it; `req.hdr` is what follows its last comma.
                Some(header) => format!("req.fhdr({})", header.replace('_', "-")),
                None => {
                    return Err(format!(
                        "HAProxy has no {field}: use address, host, path, method or http_NAME"
                    ))
                }
            },
            _ => return Err("it counts by whole paths: use --key path".into()),
        };
        let (rate, slots) = (numbers.rate(""), self.slots);
        Ok(format!(
            "{}-- In haproxy.cfg:\n\
             --   global\n\
             --       lua-prepend-path /usr/local/lib/haproxy/?.so cpath\n\
             --       lua-load-per-thread /etc/haproxy/limit.lua\n\
             --   frontend web\n\
             --       http-request set-var(txn.wait) {key},lua.tatcell\n\
             --       acl refused var(txn.wait) -m int gt 0\n\
             --       http-request return status 429 hdr Retry-After %[var(txn.wait)] if refused\n\
             local tatcell = require \"tatcell\"\n\
             local limits = tatcell.new {{ name = \"clients\", rate = \"{rate}\", burst = {}, slots = {slots}, \
             policy = \"{}\" }}\n\
             if limits.converter then\n    \
                 limits:converter(\"tatcell\", false)\n\
             else\n    \
                 core.register_converters(\"tatcell\", function (key)\n        \
                     local ok, retry_after = limits:check(key)\n        \
                     if ok then return 0 end\n        \
                     if ok == nil then return -1 end -- no verdict: other threads won every attempt\n        \
                     return math.ceil(retry_after or 86400)\n    \
                 end)\n\
             end\n",
            self.head("--"),
            numbers.burst,
            self.policy()
        ))
    }

    pub(super) fn xdp(&self, numbers: &Numbers) -> Result<String, String> {
        let bytes = if self.counts_bytes()? { " --bytes" } else { "" };
        match self.source()? {
            (32, 64) => {}
            (v4, v6) => {
                return Err(format!(
                    "it counts by the address of IPv4 and the /64 of IPv6: use --key address/32,64, not /{v4},{v6}"
                ))
            }
        }
        let (rate, slots, policy) = (numbers.rate(""), self.slots, self.policy());
        Ok(format!(
            "{}policer attach \"${{1:?the interface}}\" --rate \"{rate} burst {}\" --slots {slots} \
             --policy {policy}{bytes}\n",
            self.head("#"),
            numbers.burst
        ))
    }

    pub(super) fn dpdk(&self, numbers: &Numbers) -> Result<String, String> {
        let mode = if self.counts_bytes()? { "bytes" } else { "packets" };
        let (v4, v6) = self.source()?;
        if v4 != 32 {
            return Err(format!("it counts by the whole address of IPv4: use --key address/32,{v6}"));
        }
        if numbers.seconds != 1 {
            return Err(format!(
                "it has whole numbers a second, and {} is none: plan with one",
                numbers.rate("")
            ));
        }
        if self.policy() != "admit" {
            return Err(format!(
                "its tables admit a new key whose set is full: use --policy admit, not {}",
                self.policy()
            ));
        }
        Ok(format!(
            "{}policer \"$@\" -- --mode {mode} --key source --bits6 {v6} --{mode} {}:{} --slots {}\n",
            self.head("#"),
            numbers.units,
            numbers.burst,
            self.slots
        ))
    }

    pub(super) fn throttled(&self, numbers: &Numbers) -> Result<String, String> {
        let Numbers { units, seconds, burst } = *numbers;
        let call = format!("{} {units} {seconds}", burst - 1);
        let cost = self.cost.map_or(String::new(), |cost| format!(" <{cost}>"));
        Ok(format!(
            "{}# Each call has the limit:\n#   CL.THROTTLE <{}> {call}{cost}\n\
             listen = [\"127.0.0.1:6379\"]\nkeys = {}\nwhen_full = \"{}\"\n\
             # To share it with other servers:\n# store = \"redis://127.0.0.1:6379/\"\n# nodes = 4\n\
             # limit = [\"{call}\"]\n",
            self.head("#"),
            in_comment(&self.key.words().join("+")),
            self.slots.div_ceil(2),
            self.policy()
        ))
    }
}
