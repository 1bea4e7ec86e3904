//! The recipes of docs/FIRMWARE-RECIPES.md: builds what can be built here and runs it in QEMU.
//!
//! Zephyr, ESP-IDF, Arduino and PlatformIO are not here: stand-ins of the functions that the files use take their place
//! (packaging/firmware/test), and the names say so.

use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context as _, Result};
use xshell::{cmd, Cmd};

use crate::context::Context;
use crate::exec::Run;
use crate::machines::archive;
use crate::machines::boards::{with_cpu, TARGETS};
use crate::report::Report;
use crate::tools::{missing, Missing};

const WITH_MAKE: [&str; 4] = ["cortex-m0", "cortex-m3", "rv32imc", "rv32imac"];
const WITH_CMAKE: [&str; 6] =
    ["cortex-m0", "cortex-m3", "cortex-m4", "cortex-m4-hard", "rv32imc", "rv32imac"];

/// Zephyr: core, its Kconfig symbols.
const ZEPHYR: [(&str, &str); 3] = [
    ("cortex-m0", "CONFIG_TATCELL;CONFIG_TATCELL_CRITICAL;CONFIG_ARMV6_M_ARMV8_M_BASELINE"),
    (
        "cortex-m4-hard",
        "CONFIG_TATCELL;CONFIG_TATCELL_SINGLE;CONFIG_ARMV7_M_ARMV8_M_MAINLINE;CONFIG_FP_HARDABI",
    ),
    (
        "rv32imac",
        "CONFIG_TATCELL;CONFIG_TATCELL_CRITICAL;CONFIG_RISCV;CONFIG_RISCV_ISA_EXT_A;CONFIG_RISCV_ISA_EXT_C",
    ),
];

/// ESP-IDF: chip, its core.
const ESP_IDF: [(&str, &str); 2] = [("esp32c3", "rv32imc"), ("esp32c6", "rv32imac")];

/// Arduino: what the claim says, core, folder of the archive, flags of gcc.
const ARDUINO: [(&str, &str, &str, &[&str]); 3] = [
    ("cortex-m0plus", "cortex-m0plus", "cortex-m0plus", &["-mthumb", "-mcpu=cortex-m0plus"]),
    (
        "cortex-m4-hard",
        "cortex-m4-hard",
        "cortex-m4/fpv4-sp-d16-hard",
        &["-mthumb", "-mcpu=cortex-m4", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"],
    ),
    ("esp32c3", "rv32imc", "esp32c3", &["-march=rv32imc_zicsr", "-mabi=ilp32"]),
];

/// PlatformIO: what the board says of itself, flags, the folder that is linked from.
const PLATFORMIO: [(&str, &[&str], &str); 4] = [
    ("build.cpu=cortex-m0plus", &[], "cortex-m0plus"),
    ("build.cpu=cortex-m4", &[], "cortex-m4"),
    ("build.cpu=cortex-m4", &["-mfloat-abi=hard"], "cortex-m4/fpv4-sp-d16-hard"),
    ("build.mcu=esp32c3", &[], "esp32c3"),
];

/// Zephyr's Kconfig: symbols of the core, symbols that are set, values of TATCELL, TATCELL_CRITICAL,
/// TATCELL_SINGLE. On several cores masking is not enough, and 64-bit cores use the hosted library.
const KCONFIG: [(&[&str], &[&str], &str); 5] = [
    (&["CPU_CORTEX_M"], &[], "n n n"),
    (&["CPU_CORTEX_M"], &["TATCELL"], "y y n"),
    (&["RISCV"], &["TATCELL", "TATCELL_SINGLE"], "y n y"),
    (&["RISCV", "SMP"], &["TATCELL", "TATCELL_SINGLE"], "y y n"),
    (&["RISCV", "64BIT"], &["TATCELL"], "n n n"),
];
const CORES: [&str; 4] = ["CPU_CORTEX_M", "RISCV", "64BIT", "SMP"];

/// Zephyr reads Kconfig and module.yml with these libraries of Python, so the test does.
const READ_KCONFIG: &str = "import kconfiglib, sys
k = kconfiglib.Kconfig(sys.argv[1], warn_to_stderr=False)
for name in sys.argv[2:]: k.syms[name].set_value(2)
print(*(k.syms[n].str_value for n in ('TATCELL', 'TATCELL_CRITICAL', 'TATCELL_SINGLE')), *k.warnings)";
const READ_MODULE: &str = "import sys, yaml
build = yaml.safe_load(open(sys.argv[1]))['build']
print(build['cmake'], build['kconfig'])";

/// The suite.
pub fn run(ctx: &Context, report: &mut Report) -> Result<()> {
    if let Some(missing) = TARGETS.iter().find_map(|t| t.family.missing()) {
        report.skip("recipes", &missing);
        return Ok(());
    }
    if let Some(missing) = archive::all(ctx)? {
        report.skip("recipes", &missing);
        return Ok(());
    }
    let recipes = Recipes { ctx, out: ctx.folder("recipes")? };
    for cpu in WITH_MAKE {
        report.claim(&format!("recipe_make_builds_and_runs_on_{cpu}"), || recipes.with_make(cpu));
    }
    report.claim("recipe_make_refuses_an_unknown_core", || {
        let make = &ctx.make;
        let options = ["-n", "-C", "packaging/firmware/make", "TATCELL_CPU=z80"];
        refused("TATCELL_CPU is \"z80\"", cmd!(ctx.sh, "env {make...} {options...}"))
    });
    match missing(&["cmake"]) {
        Some(missing) => report.skip("recipe_cmake", &missing),
        None => recipes.cmake(report),
    }
    recipes.kconfig(report);
    recipes.arduino(report);
    Ok(())
}

struct Recipes<'a> {
    ctx: &'a Context,
    out: PathBuf,
}

impl Recipes<'_> {
    /// Runs a program on the board with this core.
    fn on(&self, cpu: &str, elf: &Path) -> Result<()> {
        let board = with_cpu(cpu).with_context(|| format!("no board has a {cpu}"))?;
        board.run(elf, Some(5))?.must().map(drop)
    }

    fn with_make(&self, cpu: &str) -> Result<()> {
        let (make, out) = (&self.ctx.make, self.out.join(format!("make-{cpu}")));
        let variables = [
            format!("TATCELL={}", self.ctx.root.display()),
            format!("TATCELL_CPU={cpu}"),
            format!("OUT={}", out.display()),
        ];
        cmd!(self.ctx.sh, "env {make...} -C packaging/firmware/make {variables...}").must()?;
        self.on(cpu, &out.join("app.elf"))
    }

    /// The claims that need cmake.
    fn cmake(&self, report: &mut Report) {
        let archives = format!("-DARCHIVES={}", self.ctx.root.join("target/firmware").display());
        let folder = "packaging/firmware/cmake";
        for cpu in WITH_CMAKE {
            let name = format!("recipe_cmake_builds_and_runs_on_{cpu}");
            report.claim(&name, || self.builds_and_runs(folder, "cmake", cpu, &[]));
        }
        report.claim("recipe_cmake_refuses_an_unknown_core", || {
            refused("no archive for cortex-a53", self.configure(folder, "bad", "cortex-a53", &[])?.0)
        });

        let folder = "packaging/firmware/test/zephyr";
        for (cpu, symbols) in ZEPHYR {
            let name = format!("recipe_zephyr_stand_in_runs_on_{cpu}");
            let config = format!("-DCONFIG={symbols}");
            report.claim(&name, || self.builds_and_runs(folder, "zephyr", cpu, &[&archives, &config]));
        }
        report.claim("recipe_zephyr_stand_in_refuses_64_bit", || {
            let config = "-DCONFIG=CONFIG_TATCELL;CONFIG_RISCV;CONFIG_64BIT";
            let configure = self.configure(folder, "zephyr-64", "rv32imac", &[&archives, config])?.0;
            refused("no archive for this core", configure)
        });

        let folder = "packaging/firmware/test/esp-idf";
        for (chip, cpu) in ESP_IDF {
            let name = format!("recipe_esp_idf_stand_in_runs_as_{chip}");
            let target = format!("-DIDF_TARGET={chip}");
            report.claim(&name, || self.builds_and_runs(folder, chip, cpu, &[&archives, &target]));
        }
        report.claim("recipe_esp_idf_stand_in_refuses_xtensa", || {
            let options = [archives.as_str(), "-DIDF_TARGET=esp32s3"];
            refused("no archive for esp32s3", self.configure(folder, "esp32s3", "rv32imac", &options)?.0)
        });
    }

    /// The configuration of a project, and its build folder.
    fn configure(&self, folder: &str, name: &str, cpu: &str, options: &[&str]) -> Result<(Cmd<'_>, PathBuf)> {
        let build = self.ctx.empty_folder(&format!("recipes/{name}-{cpu}"))?;
        let toolchain = self.ctx.root.join("packaging/firmware/cmake/toolchain.cmake");
        let own = [format!("-DCMAKE_TOOLCHAIN_FILE={}", toolchain.display()), format!("-DCPU={cpu}")];
        Ok((cmd!(self.ctx.sh, "cmake -S {folder} -B {build} {own...} {options...}"), build))
    }

    fn builds_and_runs(&self, folder: &str, name: &str, cpu: &str, options: &[&str]) -> Result<()> {
        let (configure, build) = self.configure(folder, name, cpu, options)?;
        configure.must()?;
        cmd!(self.ctx.sh, "cmake --build {build}").must()?;
        self.on(cpu, &build.join("app.elf"))
    }

    fn kconfig(&self, report: &mut Report) {
        let name = "recipe_zephyr_kconfig_and_module_parse";
        let libraries = "import kconfiglib, yaml";
        let python = ["python3", "/usr/bin/python3"]
            .into_iter()
            .find(|python| cmd!(self.ctx.sh, "{python} -c {libraries}").works());
        match python {
            Some(python) => drop(report.claim(name, || self.kconfig_with(python))),
            None => {
                report.skip(
                    name,
                    &Missing::new("kconfiglib, yaml", "apt-get install python3-kconfiglib python3-yaml"),
                );
            }
        }
    }

    fn kconfig_with(&self, python: &str) -> Result<()> {
        let module = self.ctx.root.join("packaging/firmware/zephyr");
        let yml = module.join("zephyr/module.yml");
        let said = cmd!(self.ctx.sh, "{python} -c {READ_MODULE} {yml}").must()?;
        let (cmake, kconfig) = said.trim().split_once(' ').context("module.yml has another form")?;
        ensure!(module.join(cmake).join("CMakeLists.txt").exists(), "{cmake} has no CMakeLists.txt");
        let file = self.out.join("test.kconfig");
        for (core, set, wanted) in KCONFIG {
            let mut text = String::from("mainmenu \"test\"\n");
            for symbol in CORES {
                let value = if core.contains(&symbol) { "y" } else { "n" };
                text += &format!("config {symbol}\n\tbool\n\tdefault {value}\n");
            }
            text += &format!("source \"{}\"\n", module.join(kconfig).display());
            std::fs::write(&file, text)?;
            let found = cmd!(self.ctx.sh, "{python} -c {READ_KCONFIG} {file} {set...}").must()?;
            ensure!(found.trim() == wanted, "{core:?} with {set:?}: {} instead of {wanted}", found.trim());
        }
        Ok(())
    }

    fn arduino(&self, report: &mut Report) {
        let library = self.out.join("arduino/tatcell");
        report.claim("recipe_arduino_library_assembles", || {
            cmd!(self.ctx.sh, "packaging/firmware/arduino/assemble {library}").must().map(drop)
        });
        for (what, cpu, folder, flags) in ARDUINO {
            let name = format!("recipe_arduino_sketch_runs_with_stand_in_core_on_{what}");
            report.claim(&name, || self.sketch(&library, cpu, folder, flags));
        }
        let name = "recipe_platformio_script_selects_archives";
        match missing(&["python3"]) {
            Some(missing) => report.skip(name, &missing),
            None => drop(report.claim(name, || self.platformio(&library))),
        }
    }

    fn sketch(&self, library: &Path, cpu: &str, folder: &str, flags: &[&str]) -> Result<()> {
        let family = with_cpu(cpu).with_context(|| format!("no board has a {cpu}"))?.target.family;
        let (gcc, gxx) = (family.tool("gcc"), family.tool("g++"));
        let examples = self.ctx.root.join("examples/firmware");
        let (board, script) = (examples.join(family.start), examples.join(family.script));
        let elf = self.out.join(format!("arduino-{}.elf", folder.replace('/', "-")));
        let object = self.out.join("board.o");
        cmd!(self.ctx.sh, "{gcc} {flags...} -Os -c -ffreestanding {board} -o {object}").must()?;
        // An archive of a larger core would run here, too.
        let triple = with_cpu(cpu).map_or("", |board| board.target.triple);
        let built = self.ctx.folder("firmware")?.join(triple).join("libtatcell-single.a");
        let given = library.join("src").join(folder).join("libtatcell.a");
        ensure!(
            std::fs::read(&given)? == std::fs::read(&built)?,
            "{} is not that of {triple}",
            given.display()
        );
        let language = ["-std=gnu++11", "-ffreestanding", "-fno-exceptions", "-fno-rtti", "-nostdlib"];
        let warnings = ["-Wall", "-Wextra", "-Werror"];
        let (headers, archives) = (library.join("src"), library.join("src").join(folder));
        let sketch = library.join("examples/PerSender/PerSender.ino");
        let stand_in = "packaging/firmware/test/arduino";
        let before = ["-I", stand_in, "-include", "Arduino.h", "-x", "c++"];
        let core = format!("{stand_in}/stand_in.cpp");
        let after = ["-x", "none"];
        let linker = ["-Wl,--fatal-warnings", "-ltatcell"];
        cmd!(
            self.ctx.sh,
            "{gxx} {flags...} -Os {language...} {warnings...} -I {headers} {before...} {sketch} {core}
             {after...} {object}
             -T {script} -L {archives} {linker...} -o {elf}"
        )
        .must()?;
        self.on(cpu, &elf)
    }

    fn platformio(&self, library: &Path) -> Result<()> {
        let script = "packaging/firmware/test/platformio.py";
        for (board, flags, wanted) in PLATFORMIO {
            let found = cmd!(self.ctx.sh, "python3 {script} {library} {board} {flags...}").must()?;
            ensure!(found.trim() == wanted, "{board} {flags:?}: {} instead of {wanted}", found.trim());
        }
        refused("no archive", cmd!(self.ctx.sh, "python3 {script} {library} build.mcu=atmega328p"))
            .context("an AVR must be refused")
    }
}

/// The command fails, and says why in these words, wherever the lines break.
fn refused(text: &str, command: Cmd<'_>) -> Result<()> {
    let done = command.done()?;
    ensure!(!done.ok(), "it is not refused");
    let words: Vec<&str> = done.all.split_whitespace().collect();
    if !words.join(" ").contains(text) {
        bail!("for another reason\n{}", done.all);
    }
    Ok(())
}
