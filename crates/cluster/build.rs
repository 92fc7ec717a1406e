//! Generates the service of a worker and its client.

use tonic_build::manual::{Builder, Method, Service};

fn main() {
    let method = |name: &str, route: &str, input: &str, output: &str| {
        Method::builder()
            .name(name)
            .route_name(route)
            .input_type(format!("crate::protocol::{input}"))
            .output_type(format!("crate::protocol::{output}"))
            .codec_path("crate::codec::CborCodec")
    };
    let worker = Service::builder()
        .name("Worker")
        .package("ssdyno.v1")
        .method(method("hello", "Hello", "Hello", "Greeting").build())
        .method(method("read_clock", "ReadClock", "ReadClock", "ClockReading").build())
        .method(method("prepare", "Prepare", "Prepare", "Preparing").build())
        .method(method("begin", "Begin", "Begin", "Done").build())
        .method(method("watch", "Watch", "Watch", "HostSnapshot").server_streaming().build())
        .method(method("stop", "Stop", "OfRun", "Done").build())
        .method(method("collect", "Collect", "OfRun", "Collected").build())
        .method(method("rows", "Rows", "FetchRows", "RowsPart").server_streaming().build())
        .method(method("start_probe", "StartProbe", "StartProbe", "OfProbe").build())
        .method(
            method("watch_probe", "WatchProbe", "OfProbe", "ProbeSample")
                .server_streaming()
                .build(),
        )
        .method(method("end_probe", "EndProbe", "OfProbe", "ProbeRecord").build())
        .method(method("release", "Release", "OfRun", "Done").build())
        .build();
    Builder::new().compile(&[worker]);
}
