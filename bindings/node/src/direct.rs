//! The function that every hit calls, on Node-API itself: `#[napi]` takes 40 to 60 ns more for a call like this.

use std::ptr;

use napi::bindgen_prelude::{Object, Unknown};
use napi::{sys, Env};
use napi_derive::napi;

use crate::decide;

/// Adds `decide(handle, how, length)` to the functions of the addon.
#[napi(module_exports)]
pub fn exports(mut exports: Object<'_>, env: Env) -> napi::Result<()> {
    let mut function = ptr::null_mut();
    // SAFETY: the name has this length, and the callback needs no data.
    let status = unsafe {
        let name = c"decide";
        sys::napi_create_function(env.raw(), name.as_ptr(), 6, Some(call), ptr::null_mut(), &mut function)
    };
    napi::check_status!(status)?;
    // SAFETY: a value of this environment, just made.
    exports.set("decide", unsafe { Unknown::from_raw_unchecked(env.raw(), function) })
}

/// Reads three numbers, and returns one.
extern "C" fn call(env: sys::napi_env, info: sys::napi_callback_info) -> sys::napi_value {
    let (mut count, mut given, mut result) = (3, [ptr::null_mut(); 3], ptr::null_mut());
    let (this, data) = (ptr::null_mut(), ptr::null_mut());
    let mut numbers = [0; 3];
    // SAFETY: Node calls this with values that live as long as the call, and there is room for three arguments.
    unsafe {
        sys::napi_get_cb_info(env, info, &mut count, given.as_mut_ptr(), this, data);
        for (number, value) in numbers.iter_mut().zip(given) {
            // Anything but a number stays 0; `lib/` passes numbers alone.
            sys::napi_get_value_uint32(env, value, number);
        }
        let [handle, how, length] = numbers;
        match decide(handle, how, length) {
            Ok(verdict) => sys::napi_create_uint32(env, verdict, &mut result),
            Err(error) => {
                let error = napi::JsError::from(error);
                error.throw_into(env);
                0
            }
        };
    }
    result
}
