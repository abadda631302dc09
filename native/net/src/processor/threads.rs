//! The network threads: how many there are, and which thread serves which processors.
//!
//! Each new thread owns a processor. A thread that ends hands its processor, with its connections and requests in work, to a
//! remaining thread, which serves that processor beside its own: no connection is closed or renumbered. A thread that starts
//! again takes its processor back. Kafka closes the connections of a processor that it removes (docs/adr/0093). Must not
//! know requests.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SendError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::event::{Timespec, epoll};

use super::{Deadline, FIRST_ADOPTED, Processor};
use crate::connection::connection_number::MOST_PROCESSORS;
use crate::data_plane::events::Level;
use crate::scheduling::inbox::Message;
use crate::scheduling::reactor::Reactor;
use pybroker_sys::scheduling;

/// An order to a thread.
enum Order {
    /// Serve another processor too.
    Serve(Box<Processor>),
    /// Return an adopted processor to its owner's thread.
    GiveBack { processor: usize, to: Sender<Order> },
    /// Hand all processors of this thread to the thread `heir`, and end.
    Leave { heir: usize, to: Sender<Order> },
}

/// A running thread, as its controller sees it.
#[derive(Debug)]
struct Running {
    thread: JoinHandle<()>,
    orders: Sender<Order>,
}

/// The running network threads.
#[derive(Debug)]
pub struct NetworkThreads {
    reactor: Arc<Reactor>,
    running: Vec<Running>,
    /// Threads that have been ordered to end.
    leaving: Vec<JoinHandle<()>>,
    /// By processor number: the thread that serves the processor.
    hosts: Vec<usize>,
    is_stopped: bool,
}

impl NetworkThreads {
    /// Starts `count` threads.
    ///
    /// # Errors
    /// As [`NetworkThreads::resize`].
    pub fn start(reactor: Arc<Reactor>, count: usize) -> io::Result<Self> {
        let mut threads =
            Self { reactor, running: Vec::new(), leaving: Vec::new(), hosts: Vec::new(), is_stopped: false };
        threads.resize(count).inspect_err(|_| threads.stop(0))?;
        Ok(threads)
    }

    /// The number of threads.
    pub fn count(&self) -> usize {
        self.running.len()
    }

    /// Changes the number of threads to `count`. New connections are assigned to these; open connections stay.
    ///
    /// # Errors
    /// When threads or file descriptors run out: those that could be started keep running. When `count` is not in 1..=64, or
    /// the threads were stopped.
    pub fn resize(&mut self, count: usize) -> io::Result<()> {
        if !(1..=MOST_PROCESSORS).contains(&count) {
            let text = format!("num.network.threads is {count}; it has to be 1 to {MOST_PROCESSORS}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        if self.is_stopped {
            return Err(io::Error::other("the network threads have been stopped"));
        }
        // Threads that are leaving hand over their processors before any new order is sent.
        self.join_leaving();
        while self.running.len() < count {
            self.begin()?;
        }
        self.reactor.inboxes.deal_to(count);
        while self.running.len() > count {
            self.end(count);
        }
        Ok(())
    }

    /// Completes the requests in work, for at most `grace_ms`, closes every connection and joins every thread.
    pub fn stop(&mut self, grace_ms: u64) {
        self.is_stopped = true;
        self.join_leaving();
        self.reactor.inboxes.post_to_all(|| Message::Stop { grace_ms });
        for Running { thread, orders } in std::mem::take(&mut self.running) {
            // A thread that waits for its processor waits for orders: closing the channel ends it.
            drop(orders);
            // A thread that panicked has reported it on stderr; the others still have to be joined.
            let _ = thread.join();
        }
    }

    fn join_leaving(&mut self) {
        for thread in self.leaving.drain(..) {
            let _ = thread.join();
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        let index = self.running.len();
        let host = self.hosts.get(index).copied();
        let own = match host {
            Some(_) => None,
            None => Some(Processor::new(index, Arc::clone(&self.reactor))?),
        };
        let (orders, received) = channel();
        let reactor = Arc::clone(&self.reactor);
        let thread = std::thread::Builder::new().name(format!("network-{index}")).spawn(move || {
            take_turns(&reactor);
            if let Some(thread) = NetworkThread::begin(index, own, received) {
                thread.run();
            }
        })?;
        match host {
            Some(host) => {
                self.order(host, Order::GiveBack { processor: index, to: orders.clone() });
                self.hosts[index] = index;
            }
            None => self.hosts.push(index),
        }
        self.running.push(Running { thread, orders });
        Ok(())
    }

    /// Ends the last thread; its processors are handed to the first `count` threads, round-robin.
    fn end(&mut self, count: usize) {
        let Some(Running { thread, orders }) = self.running.pop() else { return };
        let (index, heir) = (self.running.len(), self.running.len() % count);
        let _ = orders.send(Order::Leave { heir, to: self.running[heir].orders.clone() });
        self.reactor.inboxes.post_to(index, Message::Orders);
        self.leaving.push(thread);
        self.hosts.iter_mut().filter(|host| **host == index).for_each(|host| *host = heir);
    }

    fn order(&self, thread: usize, order: Order) {
        if self.running[thread].orders.send(order).is_ok() {
            self.reactor.inboxes.post_to(thread, Message::Orders);
        }
    }
}

fn take_turns(reactor: &Reactor) {
    if let Err(error) = scheduling::set_slice(reactor.settings.thread_slice) {
        let text = format!("the slice of the data plane's threads has no effect: {error}");
        reactor.events.line(Level::Info, text);
    }
}

/// The system's id of the current thread; 0 if `/proc` is not available.
fn system_thread() -> i32 {
    let link = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    link.file_name().and_then(|name| name.to_str()?.parse().ok()).unwrap_or(0)
}

/// One thread: its own processor, and those adopted from threads that have ended.
struct NetworkThread {
    own: Processor,
    /// The epoll set of the own processor polls their epoll sets.
    adopted: Vec<Processor>,
    /// Orders that arrived before the own processor.
    early: VecDeque<Order>,
    orders: Receiver<Order>,
}

impl NetworkThread {
    /// Thread number `index` with its processor. Waits for the processor if another thread still serves it; `None` if all
    /// threads have stopped.
    fn begin(index: usize, own: Option<Processor>, orders: Receiver<Order>) -> Option<Self> {
        let mut early = VecDeque::new();
        let own = match own {
            Some(own) => own,
            None => loop {
                match orders.recv().ok()? {
                    Order::Serve(processor) if processor.index == index => break *processor,
                    order => early.push_back(order),
                }
            },
        };
        Some(Self { own, adopted: Vec::new(), early, orders })
    }

    /// Serves until it is ordered to stop, or to end.
    fn run(mut self) {
        let mut events = Vec::with_capacity(256);
        let mut fired = Vec::new();
        self.own.counters().runs_on(system_thread());
        self.own.ordered |= !self.early.is_empty();
        loop {
            // First: orders may have arrived before the processor did, without a wake-up.
            if std::mem::take(&mut self.own.ordered)
                && let Some((heir, to)) = self.obey()
            {
                return self.leave(heir, &to);
            }
            if self.stopped() {
                break;
            }
            let timeout = self.timeout();
            self.own.pass(&mut events, &mut fired, timeout.as_ref());
            self.serve_adopted(&mut events, &mut fired);
        }
        self.own.close_all();
        self.adopted.iter_mut().for_each(Processor::close_all);
        while let Some(order) = self.next_order() {
            if let Order::Serve(mut processor) = order {
                processor.close_all();
            }
        }
    }

    fn stopped(&self) -> bool {
        self.own.stopped() && self.adopted.iter().all(Processor::stopped)
    }

    fn timeout(&self) -> Option<Timespec> {
        let adopted = self.adopted.iter().filter_map(Processor::rest);
        Timespec::try_from(self.own.rest().into_iter().chain(adopted).min()?).ok()
    }

    fn serve_adopted(&mut self, events: &mut Vec<epoll::Event>, fired: &mut Vec<Deadline>) {
        if self.adopted.is_empty() {
            return;
        }
        let come = events.iter().any(|event| event.data.u64() >= FIRST_ADOPTED);
        for adoptee in &mut self.adopted {
            if come || adoptee.rest() == Some(Duration::ZERO) {
                adoptee.pass(events, fired, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
            } else {
                adoptee.pass_deadlines(fired);
                adoptee.serve_woken();
            }
        }
    }

    fn next_order(&mut self) -> Option<Order> {
        self.early.pop_front().or_else(|| self.orders.try_recv().ok())
    }

    /// Executes the orders; returns the thread to hand all processors to, if this thread has to end.
    fn obey(&mut self) -> Option<(usize, Sender<Order>)> {
        while let Some(order) = self.next_order() {
            match order {
                Order::Serve(processor) => self.take_in(*processor),
                Order::GiveBack { processor, to } => self.give_back(processor, &to),
                Order::Leave { heir, to } => return Some((heir, to)),
            }
        }
        None
    }

    fn take_in(&mut self, mut adoptee: Processor) {
        let token = epoll::EventData::new_u64(FIRST_ADOPTED + adoptee.index as u64);
        if let Err(error) = epoll::add(&self.own.epoll, &adoptee.epoll, token, epoll::EventFlags::IN) {
            let text = format!("the connections of network thread {} end: {error}", adoptee.index);
            adoptee.reactor.events.line(Level::Warning, text);
            adoptee.close_all();
        }
        self.adopted.push(adoptee);
    }

    fn give_back(&mut self, processor: usize, to: &Sender<Order>) {
        if let Some(at) = self.adopted.iter().position(|adoptee| adoptee.index == processor) {
            let adoptee = self.adopted.swap_remove(at);
            hand_over(&self.own, adoptee, to);
        }
    }

    fn leave(mut self, heir: usize, to: &Sender<Order>) {
        let reactor = Arc::clone(&self.own.reactor);
        for adoptee in std::mem::take(&mut self.adopted) {
            hand_over(&self.own, adoptee, to);
        }
        self.own.counters().runs_on(0);
        send(self.own, to);
        reactor.inboxes.post_to(heir, Message::Orders);
    }
}

/// Hands an adopted processor to another thread.
fn hand_over(host: &Processor, adoptee: Processor, to: &Sender<Order>) {
    let _ = epoll::delete(&host.epoll, &adoptee.epoll);
    send(adoptee, to);
}

fn send(processor: Processor, to: &Sender<Order>) {
    if let Err(SendError(Order::Serve(mut processor))) = to.send(Order::Serve(Box::new(processor))) {
        // That thread has stopped: all threads are stopping.
        processor.close_all();
    }
}
