use super::*;

/// The 95th percentile of the time in an M/D/1 queue at load `rho`, 0.9 at most, in services (A. K. Erlang, 1909): the
/// terms of the sum change sign, and at higher loads they are too large for their differences.
fn md1_p95(rho: f64) -> f64 {
    let waits_at_most = |time: f64| {
        let term = |k: u32| {
            let x = rho * (f64::from(k) - time);
            let factorial: f64 = (1..=k).map(f64::from).product();
            x.powi(k as i32) / factorial * (-x).exp()
        };
        (1.0 - rho) * (0..=time.floor() as u32).map(term).sum::<f64>()
    };
    let (mut low, mut high) = (0.0, 25.0);
    if waits_at_most(0.0) >= 0.95 {
        return 1.0;
    }
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if waits_at_most(middle) < 0.95 { low = middle } else { high = middle }
    }
    1.0 + low
}

/// A device that serves reads and writes one after the other, 25 us each, 100 us away. Shares of both rates add up.
fn surface(x: f64, y: f64) -> Option<f64> {
    let rho = 0.02 + 0.98 * x + y;
    (rho < 1.0).then(|| (100.0 + 25.0 * md1_p95(rho.min(0.9))).ln())
}

fn at(node: Node) -> (f64, f64) {
    (f64::from(node.0) / f64::from(WHOLE), f64::from(node.1) / f64::from(WHOLE))
}

fn value(node: Node) -> Value {
    let (x, y) = at(node);
    surface(x, y).map_or(Value::Overloaded, |log| Value::Latency(log, 0.0))
}

fn adapted(error: f64) -> (Mesh, usize) {
    let (mut mesh, mut points) = (Mesh::new(error), 0);
    while let Some(node) = mesh.next() {
        assert_eq!(mesh.value(node), None, "{node:?} twice");
        mesh.add(node, value(node));
        points += 1;
    }
    (mesh, points)
}

/// Of places with a latency: the greatest difference where interpolation knows one, and the share where it does.
fn errors(log: impl Fn(f64, f64) -> Option<f64>) -> (f64, f64) {
    let (mut worst, mut known, mut all) = (0.0_f64, 0, 0);
    for step in 0..64 * 64 {
        let (x, y) = (f64::from(step % 64) / 64.0 + 0.003, f64::from(step / 64) / 64.0 + 0.005);
        let Some(truth) = surface(x.min(1.0), y.min(1.0)) else { continue };
        all += 1;
        if let Some(log) = log(x, y) {
            known += 1;
            worst = worst.max((log - truth).abs());
        }
    }
    (worst, f64::from(known) / f64::from(all))
}

fn of_mesh(mesh: &Mesh) -> (f64, f64) {
    let triangles = mesh.triangles();
    errors(|x, y| {
        interpolate(&triangles, at, |node| mesh.value(node).and_then(Value::latency), (x, y))
    })
}

/// A heavy load waits as Kingman's exponential does, within 12 % at 0.8 and 6 % at 0.9.
#[test]
fn the_oracle_is_near_heavy_traffic() {
    for (rho, most) in [(0.8, 0.12), (0.9, 0.06)] {
        // Kingman's exponential with the mean wait of Pollaczek and Khinchine, over those who wait.
        let mean = rho / (2.0 * (1.0 - rho));
        let expected = mean / rho * (rho / 0.05_f64).ln();
        let wait = md1_p95(rho) - 1.0;
        assert!((wait / expected - 1.0).abs() < most, "{rho}: {wait} {expected}");
    }
    assert_eq!(md1_p95(0.02), 1.0);
}

/// The finished map of a device with a closed form is within 1.5 times its error of the latency at these rates, or at
/// rates that differ by less than the error. It knows all but a strip before the border. Halving looks at sides alone:
/// inside a triangle the difference may be somewhat greater.
#[test]
fn a_finished_map_is_within_its_error() {
    for error in [0.05, 0.1, 0.2] {
        let (mesh, points) = adapted(error);
        let (worst, known) = of_mesh(&mesh);
        assert!(points < 300, "{error}: {points}");
        assert!(worst < 2.5 * error.ln_1p(), "{error}: {worst}");
        let triangles = mesh.triangles();
        let log = |node| mesh.value(node).and_then(Value::latency);
        for step in 0..50 * 50 {
            let (x, y) = (f64::from(step % 50) / 50.0, f64::from(step / 50) / 50.0);
            let Some(found) = interpolate(&triangles, at, log, (x, y)) else { continue };
            let less = surface((x - error).max(0.0), (y - error).max(0.0));
            assert!(less.is_some_and(|less| found > less - 1.5 * error.ln_1p()), "{x} {y}");
            let more = surface(x + error, y + error);
            assert!(more.is_none_or(|more| found < more + 1.5 * error.ln_1p()), "{x} {y}");
        }
        assert!(known > 1.0 - 2.5 * error, "{error}: {known}");
    }
}

/// A full grid with bilinear interpolation needs more than twice as many points to be as near, and to know as much.
#[test]
fn a_full_grid_needs_far_more_points() {
    let error = 0.05;
    let (mesh, points) = adapted(error);
    let (worst, known) = of_mesh(&mesh);
    let grid = |n: u32| {
        let place = |at: u32| f64::from(at) / f64::from(n);
        errors(|x, y| {
            let (i, j) =
                (((x * f64::from(n)) as u32).min(n - 1), ((y * f64::from(n)) as u32).min(n - 1));
            let (u, v) = (x * f64::from(n) - f64::from(i), y * f64::from(n) - f64::from(j));
            let corner = |di: u32, dj: u32| surface(place(i + di), place(j + dj));
            let low = corner(0, 0)? * (1.0 - u) + corner(1, 0)? * u;
            let high = corner(0, 1)? * (1.0 - u) + corner(1, 1)? * u;
            Some(low * (1.0 - v) + high * v)
        })
    };
    let enough = (4..100).find(|n| {
        let (grid_worst, grid_known) = grid(*n);
        grid_worst <= worst && grid_known >= known
    });
    let full = (enough.unwrap() + 1).pow(2) as usize;
    assert!(full > 2 * points, "{points} adaptive, {full} full");
}
