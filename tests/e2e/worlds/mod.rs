//! The fake machines of the tests: each contains what the test requested.

use std::env::consts::ARCH;
use std::path::Path;

use cudaguard_tests::world::{self, H100, Layout, T4, World};
use cudaguard_tests::{Scratch, Test, tests};

pub(crate) fn tests() -> Vec<Test> {
    tests![fake_host_shows_facts_then_vanishes, fake_libraries_list_same_gpus, loader_finds_all_layouts,]
}

/// Returns the output of a shell script on the machine.
fn seen(world: &World, script: &str) -> String {
    let scratch = Scratch::new("seen");
    let machine = world.make(&scratch);
    let outcome = machine.under(&["sh", "-c", script], "true", &[]).run().success();
    snapshot_free(&outcome.stdout)
}

fn snapshot_free(text: &str) -> String {
    text.trim_end().replace(&format!("{ARCH}-linux-gnu"), "<triplet>")
}

fn fake_host_shows_facts_then_vanishes() {
    world::need();
    let world = World::new("535.261.03", 12020, &[T4, H100]);
    let script = "cat /proc/driver/nvidia/version; ls /proc/driver/nvidia/gpus /sys/bus/pci/devices; ls /dev; cat \
                  /sys/bus/pci/devices/0000:02:00.0/device; ls -d /usr/lib/*/libcuda.so.*";
    let text = seen(&world, script);
    for word in [
        "535.261.03  Release Build",
        "0000:01:00.0",
        "nvidia1",
        "nvidiactl",
        "0x2330",
        "/usr/lib/<triplet>/libcuda.so.535.261.03",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!Path::new(&format!("/usr/lib/{ARCH}-linux-gnu/fake-driver")).exists());
    assert_eq!(seen(&World { proc: false, ..World::bare() }, "echo /proc/* /dev/nvidia*"), "/proc/* /dev/nvidia*");
}

fn fake_libraries_list_same_gpus() {
    world::need();
    let world = World { fastest: vec![1, 0], ..World::new("535.261.03", 12020, &[T4, H100]) };
    let ask = "from ctypes import *\n\
               ml, cuda, n, major, minor = CDLL('libnvidia-ml.so.1'), CDLL('libcuda.so.1'), c_int(), c_int(), c_int()\n\
               ml.nvmlDeviceGetName.argtypes = ml.nvmlDeviceGetUUID.argtypes = [c_void_p, c_char_p, c_uint]\n\
               ml.nvmlDeviceGetCudaComputeCapability.argtypes = [c_void_p, c_void_p, c_void_p]\n\
               text, handle, uuid = create_string_buffer(96), c_void_p(), create_string_buffer(16)\n\
               before = ml.nvmlDeviceGetCount_v2(byref(n)); ml.nvmlInit_v2()\n\
               ml.nvmlSystemGetDriverVersion(text, 96); version = text.value.decode()\n\
               ml.nvmlSystemGetCudaDriverVersion_v2(byref(n)); print(before, version, n.value)\n\
               ml.nvmlDeviceGetCount_v2(byref(n))\n\
               for k in range(n.value):\n \
               ml.nvmlDeviceGetHandleByIndex_v2(k, byref(handle)); ml.nvmlDeviceGetName(handle, text, 96); name = text.value\n \
               ml.nvmlDeviceGetUUID(handle, text, 96); ml.nvmlDeviceGetCudaComputeCapability(handle, byref(major), byref(minor))\n \
               print(name.decode(), text.value.decode()[:12], major.value, minor.value)\n\
               cuda.cuInit(0); cuda.cuDeviceGetCount(byref(n))\n\
               for k in range(n.value):\n \
               cuda.cuDeviceGetName(text, 96, k); cuda.cuDeviceGetUuid(uuid, k); print(text.value.decode(), uuid.raw[:4].hex())\n";
    let scratch = Scratch::new("asked");
    let outcome = world.make(&scratch).call("python3", &[]).args(["-c", ask]).run().success();
    assert_eq!(
        outcome.stdout,
        "1 535.261.03 12020\nTesla T4 GPU-00000001 7 5\nNVIDIA H100 80GB HBM3 GPU-00000002 9 0\n\
         NVIDIA H100 80GB HBM3 00000002\nTesla T4 00000001\n"
    );
}

fn loader_finds_all_layouts() {
    world::need();
    let find = "import ctypes; ctypes.CDLL('libcuda.so.1'); print([l.split()[-1] for l in open('/proc/self/maps') if \
                'libcuda' in l][0])";
    for (layout, place) in [
        (Layout::System, "/usr/lib/<triplet>/libcuda.so.535.261.03"),
        (Layout::Debian, "/usr/lib/<triplet>/nvidia/current/libcuda.so.535.261.03"),
        (Layout::Wsl, "/usr/lib/wsl/lib/libcuda.so.535.261.03"),
        (Layout::Jetson, "/usr/lib/<triplet>/nvidia/libcuda.so.535.261.03"),
    ] {
        let world = World { layout, ..World::new("535.261.03", 12020, &[T4]) };
        for overlays in [true, false] {
            let scratch = Scratch::new("layout");
            let machine = world.make(&scratch);
            let machine = if overlays { machine } else { machine.without_overlays() };
            let outcome = machine.call("python3", &[]).args(["-c", find]).run().success();
            assert_eq!(snapshot_free(&outcome.stdout), place, "{layout:?}, {overlays}: {outcome}");
        }
    }
}
