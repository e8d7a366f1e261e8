//! `strftime_now`: the date a template writes into its prompt, in UTC.

use minijinja::{Error, ErrorKind};
use std::{
    fmt::Write,
    time::{SystemTime, UNIX_EPOCH},
};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// A moment as a calendar has it.
struct Calendar {
    year: i64,
    /// 1 is January.
    month: u32,
    day: u32,
    /// Day of the year, 1 is January 1st.
    of_year: i64,
    /// 0 is Sunday.
    weekday: usize,
    hour: i64,
    minute: i64,
    second: i64,
}

impl Calendar {
    fn new(now: SystemTime) -> Self {
        let seconds = match now.duration_since(UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
            Err(before) => -i64::try_from(before.duration().as_secs()).unwrap_or(i64::MAX),
        };
        let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        Self {
            year,
            month,
            day,
            of_year: days - days_before(year) + 1,
            weekday: usize::try_from((days + 4).rem_euclid(7)).expect("a remainder of 7"),
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
        }
    }
}

/// Year, month and day of the `days`th day after 1970-01-01 in the proleptic Gregorian calendar. The algorithm counts
/// years from March, so that the leap day is a year's last: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms".
fn civil(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, u32::try_from(month).expect("1 to 12"), u32::try_from(day).expect("1 to 31"))
}

/// Days from 1970-01-01 to January 1st of `year`.
fn days_before(year: i64) -> i64 {
    let before = year - 1;
    365 * (year - 1970) + before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400) - 477
}

/// The moment by a format of C's `strftime`.
pub(super) fn strftime(now: SystemTime, format: &str) -> Result<String, Error> {
    let at = Calendar::new(now);
    let mut out = String::new();
    let mut rest = format.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut code = rest.next();
        let bare = code == Some('-');
        if bare {
            code = rest.next();
        }
        let Some(code) = code else {
            return Err(Error::new(ErrorKind::InvalidOperation, "strftime_now: the format ends with `%`"));
        };
        field(&at, code, bare, &mut out)?;
    }
    Ok(out)
}

/// Writes one field; `bare` leaves out leading zeros.
fn field(at: &Calendar, code: char, bare: bool, out: &mut String) -> Result<(), Error> {
    let month = &MONTHS[at.month as usize - 1];
    let day = &DAYS[at.weekday];
    let twelve = (at.hour + 11) % 12 + 1;
    let mut number = |value: i64, width: usize| {
        let width = if bare { 0 } else { width };
        write!(out, "{value:0width$}").expect("a String takes everything");
    };
    match code {
        'Y' => number(at.year, 4),
        'y' => number(at.year.rem_euclid(100), 2),
        'm' => number(at.month.into(), 2),
        'd' => number(at.day.into(), 2),
        'j' => number(at.of_year, 3),
        'H' => number(at.hour, 2),
        'I' => number(twelve, 2),
        'M' => number(at.minute, 2),
        'S' => number(at.second, 2),
        'e' => write!(out, "{:2}", at.day).expect("a String takes everything"),
        'B' => out.push_str(month),
        'b' | 'h' => out.push_str(&month[..3]),
        'A' => out.push_str(day),
        'a' => out.push_str(&day[..3]),
        'p' => out.push_str(if at.hour < 12 { "AM" } else { "PM" }),
        'F' => write!(out, "{:04}-{:02}-{:02}", at.year, at.month, at.day).expect("a String takes everything"),
        'T' => write!(out, "{:02}:{:02}:{:02}", at.hour, at.minute, at.second).expect("a String takes everything"),
        'Z' => out.push_str("UTC"),
        'z' => out.push_str("+0000"),
        '%' => out.push('%'),
        other => {
            let message = format!("strftime_now: the format has `%{other}`, which is not known here");
            return Err(Error::new(ErrorKind::InvalidOperation, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn at(seconds: u64, format: &str) -> String {
        strftime(UNIX_EPOCH + Duration::from_secs(seconds), format).unwrap()
    }

    /// The expected texts are those of `date -u -d @…`.
    #[test]
    fn dates_are_those_of_the_calendar() {
        let all = "%Y-%m-%d %H:%M:%S %j %a %A %b %B %y %e %I %p %-d %-m %-H %F %T %Z %z %%";
        assert_eq!(
            at(0, all),
            "1970-01-01 00:00:00 001 Thu Thursday Jan January 70  1 12 AM 1 1 0 1970-01-01 00:00:00 UTC +0000 %"
        );
        assert_eq!(at(951_827_696, "%F %T %j %a"), "2000-02-29 12:34:56 060 Tue");
        assert_eq!(at(1_735_689_599, "%F %T %j %A, %I %p"), "2024-12-31 23:59:59 366 Tuesday, 11 PM");
        assert_eq!(at(4_107_542_400, "%d %b %Y"), "01 Mar 2100");
        let before = UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(strftime(before, "%F %T %a").unwrap(), "1969-12-31 23:59:59 Wed");
    }

    #[test]
    fn days_follow_each_other() {
        let mut last = civil(-800_000);
        for day in -799_999..800_000 {
            let (year, month, of_month) = civil(day);
            let next = (year, month, of_month);
            assert!(next > last && (of_month == 1 || next == (last.0, last.1, last.2 + 1)), "day {day}: {next:?}");
            if (month, of_month) == (1, 1) {
                assert_eq!(days_before(year), day);
            }
            last = next;
        }
    }

    #[test]
    fn an_unknown_field_is_an_error() {
        assert!(strftime(UNIX_EPOCH, "%Q").unwrap_err().to_string().contains("`%Q`"));
        assert!(strftime(UNIX_EPOCH, "100%").is_err());
    }
}
