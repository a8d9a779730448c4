use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let context = CudaContext::new(0)?;
    let module = context.load_module(Ptx::from_src(include_str!(concat!(env!("OUT_DIR"), "/scale.ptx"))))?;
    let scale = module.load_function("scale")?;
    let stream = context.default_stream();
    let mut numbers = stream.clone_htod(&[1.0f32; 32])?;
    unsafe { stream.launch_builder(&scale).arg(&mut numbers).launch(LaunchConfig::for_num_elems(32))? };
    println!("{:?}", stream.clone_dtoh(&numbers)?);
    Ok(())
}
