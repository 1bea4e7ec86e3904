//! The C ABI as data: every structure and every function of `include/tatcell.ffi.h`; build.rs generates it.

/// A field of a structure, or a parameter.
#[derive(Debug)]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Its type, without const and stars.
    pub base: &'static str,
    /// How many stars it has: 0 = a number.
    pub stars: usize,
    /// Whether what it points to is const.
    pub is_const: bool,
    /// Elements of an array.
    pub count: usize,
    /// Bytes of one.
    pub size: usize,
    /// Bytes from the start of the structure.
    pub at: usize,
}

/// A structure.
#[derive(Debug)]
pub struct Record {
    /// Its name.
    pub name: &'static str,
    /// Bytes.
    pub size: usize,
    /// Alignment.
    pub align: usize,
    /// Its fields, in order.
    pub fields: &'static [Part],
}

/// A function.
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Whether it returns a code.
    pub is_code: bool,
    /// Where it is.
    at: fn() -> *const (),
    /// Its parameters, in order.
    pub parts: &'static [Part],
}

include!(concat!(env!("OUT_DIR"), "/abi.rs"));

/// Most parameters of a function.
const MOST: usize = 10;

impl Record {
    /// The structure of this name.
    pub fn find(name: &str) -> Option<&'static Record> {
        RECORDS.iter().find(|record| record.name == name)
    }

    /// Its field of this name.
    pub fn field(&self, name: &str) -> &'static Part {
        self.fields.iter().find(|part| part.name == name).unwrap_or_else(|| panic!("{}.{name}", self.name))
    }

    /// Whether it starts with its own size.
    pub fn grows(&self) -> bool {
        self.fields.first().is_some_and(|part| part.name == "size")
    }

    /// Whether nobody but the library knows what is in it.
    pub fn is_opaque(&self) -> bool {
        self.fields.iter().any(|part| part.name == "opaque")
    }
}

impl Function {
    /// The function of this name.
    pub fn find(name: &str) -> &'static Function {
        FUNCTIONS
            .iter()
            .find(|function| function.name == name)
            .unwrap_or_else(|| panic!("there is no {name}"))
    }

    /// Calls it. Numbers and pointers only, each in a register or 8 bytes of the stack of its own, as the ABIs of
    /// x86-64 and AArch64 have it; what there are too many of is not looked at.
    ///
    /// # Safety
    /// The contract of the function, as its header has it.
    pub unsafe fn call(&self, arguments: &[usize]) -> u64 {
        const { assert!(cfg!(any(target_arch = "x86_64", target_arch = "aarch64"))) };
        type Any =
            unsafe extern "C" fn(usize, usize, usize, usize, usize, usize, usize, usize, usize, usize) -> u64;
        let mut a = [0; MOST];
        a[..arguments.len()].copy_from_slice(arguments);
        // SAFETY: a function of the C ABI, whose parameters are numbers and pointers, none wider than a register.
        let function: Any = unsafe { std::mem::transmute((self.at)()) };
        // SAFETY: the caller's contract; surplus arguments are ignored by these ABIs.
        unsafe { function(a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9]) }
    }
}
