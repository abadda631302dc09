//! How threads of the data plane wait, wake each other and act on time.

pub(crate) mod clock;
pub(crate) mod cross_thread;
pub(crate) mod inbox;
pub(crate) mod inboxes;
pub(crate) mod reactor;
pub(crate) mod timer_wheel;
pub(crate) mod wake_up;
