//! The deadlines of one processor: a hierarchical timing wheel (Varghese and Lauck, 1987), as in Kafka's purgatory.
//!
//! Four levels of 64 slots with ticks of 1, 64, 4,096 and 262,144 ms. The cost of inserting and expiring does not depend on
//! the number of timers. A timer cannot be cancelled: when it fires, the caller checks whether the object of its token still
//! exists.

const BITS: u32 = 6;
const SLOTS: usize = 1 << BITS;
const LEVELS: usize = 4;

#[derive(Debug)]
struct Timer<T> {
    deadline: u64,
    token: T,
}

/// A wheel of timers with tokens `T`. Times are milliseconds of a monotonic clock.
#[derive(Debug)]
pub struct TimerWheel<T> {
    levels: [Vec<Vec<Timer<T>>>; LEVELS],
    now: u64,
    len: usize,
}

impl<T> TimerWheel<T> {
    /// An empty wheel at time `now`.
    pub fn new(now: u64) -> Self {
        Self { levels: std::array::from_fn(|_| (0..SLOTS).map(|_| Vec::new()).collect()), now, len: 0 }
    }

    /// Adds a timer: `token` fires at `deadline`, or at the next advance if that has passed.
    pub fn insert(&mut self, deadline: u64, token: T) {
        self.len += 1;
        self.place(Timer { deadline: deadline.max(self.now + 1), token });
    }

    fn place(&mut self, timer: Timer<T>) {
        let ahead = timer.deadline - self.now;
        let mut level = 0;
        while level + 1 < LEVELS && ahead >= 1 << (BITS * (level as u32 + 1)) {
            level += 1;
        }
        // A timer beyond the last level's reach waits in the farthest slot and is placed again from there.
        let reach = (1_u64 << (BITS * LEVELS as u32)) - (1 << (BITS * (LEVELS as u32 - 1)));
        let at = self.now + ahead.min(reach);
        let slot = (at >> (BITS * level as u32)) as usize & (SLOTS - 1);
        self.levels[level][slot].push(timer);
    }

    /// Advances to `now`, from one filled slot to the next, and appends each expired token to `fired`.
    pub fn advance(&mut self, now: u64, fired: &mut Vec<T>) {
        while self.now < now {
            let Some(step) = self.next_due().filter(|step| *step <= now - self.now) else {
                self.now = now;
                return;
            };
            self.now += step;
            for level in (1..LEVELS).rev() {
                let shift = BITS * level as u32;
                if self.now & ((1 << shift) - 1) == 0 {
                    let slot = (self.now >> shift) as usize & (SLOTS - 1);
                    for timer in std::mem::take(&mut self.levels[level][slot]) {
                        self.fire_or_place(timer, fired);
                    }
                }
            }
            let slot = self.now as usize & (SLOTS - 1);
            for timer in std::mem::take(&mut self.levels[0][slot]) {
                self.fire_or_place(timer, fired);
            }
        }
    }

    fn fire_or_place(&mut self, timer: Timer<T>, fired: &mut Vec<T>) {
        if timer.deadline <= self.now {
            self.len -= 1;
            fired.push(timer.token);
        } else {
            self.place(timer);
        }
    }

    /// Milliseconds until the next [`TimerWheel::advance`] is needed; `None` without timers. Never later than the next
    /// deadline, but earlier if a coarser slot has to be redistributed.
    pub fn next_due(&self) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        (0..LEVELS).filter_map(|level| self.next_of(level)).min()
    }

    fn next_of(&self, level: usize) -> Option<u64> {
        let shift = BITS * level as u32;
        let current = self.now >> shift;
        (1..=SLOTS as u64)
            .find(|ahead| !self.levels[level][(current + ahead) as usize & (SLOTS - 1)].is_empty())
            .map(|ahead| ((current + ahead) << shift) - self.now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::TimerWheel;

    #[test]
    fn a_timer_fires_at_its_deadline_and_not_before() {
        let mut wheel = TimerWheel::new(0);
        let mut fired = Vec::new();
        wheel.insert(500, "a");
        wheel.advance(499, &mut fired);
        assert!(fired.is_empty());
        wheel.advance(500, &mut fired);
        assert_eq!(fired, ["a"]);
        assert_eq!(wheel.next_due(), None);
    }

    proptest! {
        #[test]
        fn every_timer_fires_once_and_in_time(
            start in 0_u64..1 << 30,
            delays in prop::collection::vec(0_u64..40_000_000, 1..40),
        ) {
            let mut wheel = TimerWheel::new(start);
            for delay in &delays {
                wheel.insert(start + delay, start + delay);
            }
            let (mut now, mut fired, mut seen) = (start, Vec::new(), 0);
            while let Some(wait) = wheel.next_due() {
                prop_assert!(wait > 0);
                now += wait;
                wheel.advance(now, &mut fired);
                for deadline in fired.drain(..) {
                    seen += 1;
                    prop_assert!(deadline == now || (deadline == start && now == start + 1));
                }
            }
            prop_assert_eq!(seen, delays.len());
        }
    }
}
