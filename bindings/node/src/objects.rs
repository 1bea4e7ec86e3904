//! The objects of this thread, by the numbers that JavaScript has for them.

use std::cell::RefCell;
use std::rc::Rc;

use crate::chain::Links;
use crate::errors::{closed, Failed};
use crate::limiter::Limiter;
use crate::scratch::Scratch;
use crate::single::Single;

/// An object.
pub(crate) enum Object {
    Scratch(Rc<Scratch>),
    Limiter(Rc<Limiter>),
    Cell(Rc<Single>),
    Chain(Links),
}

/// A place that is free has the number of the next free one.
enum Place {
    Taken(Object),
    Free(usize),
}

struct Objects {
    places: Vec<Place>,
    free: usize,
}

thread_local! {
    static OBJECTS: RefCell<Objects> = const { RefCell::new(Objects { places: Vec::new(), free: usize::MAX }) };
}

/// Keeps an object and returns its number.
pub(crate) fn add(object: Object) -> u32 {
    OBJECTS.with_borrow_mut(|objects| {
        let at = objects.free.min(objects.places.len());
        match objects.places.get_mut(at) {
            Some(place) => {
                if let Place::Free(next) = std::mem::replace(place, Place::Taken(object)) {
                    objects.free = next;
                }
            }
            None => objects.places.push(Place::Taken(object)),
        }
        at as u32
    })
}

/// Drops an object.
pub(crate) fn remove(handle: u32) {
    // The object is dropped after the borrow ends.
    let _gone = OBJECTS.with_borrow_mut(|objects| {
        let place = objects.places.get_mut(handle as usize)?;
        if matches!(place, Place::Free(_)) {
            return None;
        }
        let gone = std::mem::replace(place, Place::Free(objects.free));
        objects.free = handle as usize;
        Some(gone)
    });
}

/// Calls a function with an object.
pub(crate) fn with<A>(handle: u32, call: impl FnOnce(&Object) -> Result<A, Failed>) -> Result<A, Failed> {
    OBJECTS.with_borrow(|objects| match objects.places.get(handle as usize) {
        Some(Place::Taken(object)) => call(object),
        _ => Err(closed()),
    })
}

/// Returns a scratch.
pub(crate) fn scratch(handle: u32) -> Result<Rc<Scratch>, Failed> {
    with(handle, |object| match object {
        Object::Scratch(scratch) => Ok(Rc::clone(scratch)),
        _ => Err(closed()),
    })
}
