//! Where and when this was measured, and the features of the processor on which the code depends.

use tatcell::HashKind;

pub struct Machine {
    /// Processor, pinning, load.
    pub text: String,
    /// Maker and family of the processor, its model, and what the library asks it for: runs of the same ones are
    /// compared.
    pub family: String,
    pub model: String,
    pub features: String,
    /// Date and time, UTC.
    pub date: String,
}

impl Machine {
    pub fn read(cpu: Option<usize>) -> Machine {
        let file = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let info = file("/proc/cpuinfo");
        let field = |name: &str| {
            let mut fields = info.lines().filter_map(|line| line.split_once(':'));
            fields.find(|(field, _)| field.trim() == name).map(|(_, value)| value.trim().to_string())
        };
        let name = field("model name").unwrap_or_else(|| std::env::consts::ARCH.into());
        let cpus = info.lines().filter(|line| line.starts_with("processor")).count().max(1);
        let pinned = cpu.map_or("not pinned".into(), |cpu| format!("pinned to cpu {cpu} of {cpus}"));
        let load = file("/proc/loadavg");
        let load = load.split(' ').next().unwrap_or("?");
        let maker = field("vendor_id").unwrap_or_else(|| std::env::consts::ARCH.into());
        let [number, model] = ["cpu family", "model"].map(|name| field(name).unwrap_or_default());
        let features = features();
        let which = match number.is_empty() {
            true => features.clone(),
            false => format!("family {number} model {model}, {features}"),
        };
        Machine {
            family: format!("{maker} {number}").trim_end().to_string(),
            text: format!("{name} ({which}), {pinned}, load {load}"),
            model,
            features,
            date: date(),
        }
    }
}

/// What of the processor the library uses: `aes`, `avx2`, `avx512`, as far as it is there. Processors of one family
/// differ in it: of AMD's family 25, Zen 3 ends with AVX2, and Zen 4 has AVX-512.
fn features() -> String {
    let aes = HashKind::Aes.is_available().then_some("aes");
    #[cfg(target_arch = "x86_64")]
    let vectors = [is_x86_feature_detected!("avx2").then_some("avx2"), has_avx512().then_some("avx512")];
    #[cfg(not(target_arch = "x86_64"))]
    let vectors = [None, None];
    let all: Vec<&str> = std::iter::once(aes).chain(vectors).flatten().collect();
    if all.is_empty() {
        "none".into()
    } else {
        all.join(" ")
    }
}

#[cfg(target_arch = "x86_64")]
fn has_avx512() -> bool {
    if cfg!(tatcell_without_avx512) {
        return false;
    }
    is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vbmi2")
}

/// What decides which code of the library runs here, under valgrind too: the architecture, AES for the hash, and
/// AVX-512 as the tag search asks for it.
pub fn processor() -> String {
    let mut text = std::env::consts::ARCH.to_string();
    if HashKind::Aes.is_available() {
        text += "+aes";
    }
    #[cfg(target_arch = "x86_64")]
    if has_avx512() {
        text += "+avx512";
    }
    text
}

fn date() -> String {
    let mut text = [0u8; 32];
    // SAFETY: tm is plain bits, time is a place for one time_t, and strftime gets the true size of the text.
    let length = unsafe {
        let time = libc::time(std::ptr::null_mut());
        let mut tm: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&time, &mut tm);
        libc::strftime(text.as_mut_ptr().cast(), text.len(), c"%Y-%m-%d %H:%M UTC".as_ptr(), &tm)
    };
    String::from_utf8_lossy(&text[..length]).into_owned()
}
