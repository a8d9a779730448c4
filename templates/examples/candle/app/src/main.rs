use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = CudaContext::new(0)?;
    let add = context.load_module(Ptx::from_src(my_kernels::ADD))?.load_function("add")?;
    let scale = context.load_module(Ptx::from_src(my_kernels::SCALE))?.load_function("scale")?;
    let stream = context.default_stream();
    let (mut x, y) = (stream.clone_htod(&[1.0f32; 32])?, stream.clone_htod(&[2.0f32; 32])?);
    unsafe {
        stream.launch_builder(&add).arg(&mut x).arg(&y).launch(LaunchConfig::for_num_elems(32))?;
        stream.launch_builder(&scale).arg(&mut x).launch(LaunchConfig::for_num_elems(32))?;
    }
    println!("{:?}", stream.clone_dtoh(&x)?);
    Ok(())
}
