//! Writes the C header: `tatcell-header OUT`, run from the repository's root by `make header`.
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(out) = std::env::args().nth(1) else {
        eprintln!("usage: tatcell-header OUT");
        return ExitCode::from(2);
    };
    let config = cbindgen::Config::from_file("cbindgen.toml").expect("cbindgen.toml");
    let bindings =
        cbindgen::Builder::new().with_crate(".").with_config(config).generate().expect("src/capi parses");
    let mut raw = Vec::new();
    bindings.write(&mut raw);
    let header = tidy(&String::from_utf8(raw).expect("cbindgen writes UTF-8"));
    match std::fs::write(&out, header) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{out}: {e}");
            ExitCode::FAILURE
        }
    }
}

/// What cbindgen has no option for: negative constants in parentheses, comments of one line on one line, typedef
/// names in declarations, no constants of Rust's `impl` blocks, no runs of empty lines.
fn tidy(raw: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    let mut lines = raw.lines().peekable();
    while let Some(line) = lines.next() {
        let mut line = line.trim_end().to_owned();
        let indent = line.len() - line.trim_start().len();
        if line.trim_start() == "/**" {
            let mut body = vec![lines.next().expect("a comment ends").trim_end().to_owned()];
            while body.last().is_none_or(|l| l.trim() != "*/") {
                body.push(lines.next().expect("a comment ends").trim_end().to_owned());
            }
            if lines.peek().is_some_and(|l| l.starts_with("#define tatcell_")) {
                lines.next();
                continue;
            }
            let text = body[0].trim().trim_start_matches("* ");
            if body.len() == 2 && indent + text.len() + 7 <= 120 {
                line = format!("{}/** {text} */", " ".repeat(indent));
            } else {
                out.push(line);
                line = body.pop().expect("not empty");
                out.append(&mut body);
            }
        } else if let Some((name, value)) = line.strip_prefix("#define ").and_then(|d| d.split_once(" -")) {
            line = format!("#define {name} (-{value})");
        } else if !line.starts_with("typedef") {
            line = line.replace("struct tatcell_", "tatcell_");
        }
        let blank = out.last().is_none_or(|l| l.is_empty());
        if !(line.is_empty() && blank) {
            out.push(line);
        }
    }
    out.push(String::new());
    out.join("\n")
}
