//! Reader for container images: in the OCI layout (a directory or a tar) and as `docker save` writes them. The layers
//! are read from the top down, and files that an upper layer hides or deletes are skipped.
//!
//! The OCI image specification defines how a layer deletes files: see "Image Layer Filesystem Changeset", whiteouts.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;
use tar::Archive;

use cudaguard::internal::file_error::{FileError, FileProblem};

use super::bounds::Names;
use super::{ArchiveFormat, ArchivePlace, LONGEST_TEXT, ReadAt, tape};

/// The offset and size of each file in a tar that `docker save` wrote.
pub(super) type Files = BTreeMap<String, (u64, u64)>;

/// Returns the files of a tar that is an image; `None` for another tar. A compressed tar is not supported, because it
/// would have to be read twice.
pub(super) fn image_from_tar(file: &mut File) -> Option<Files> {
    file.rewind().ok()?;
    let mut files = Files::new();
    let header = tape::HeaderLimit::default();
    let mut archive = Archive::new(tape::Bounded { reader: &mut *file, header: header.clone() });
    header.allow(0);
    for entry in archive.entries_with_seek().ok()? {
        let entry = entry.ok()?;
        header.allow(0);
        let name = super::bounds::normalize_member_path(&String::from_utf8_lossy(&entry.path_bytes())).ok()?;
        // An image has no other files.
        let of_image = !name.contains('/') || name.starts_with("blobs/") || name.matches('/').count() == 1;
        if !of_image || files.len() == MOST_FILES {
            return None;
        }
        if entry.header().entry_type().is_file() {
            files.insert(name, (entry.raw_file_position(), entry.size()));
        }
    }
    let is_layout = files.contains_key("oci-layout") && files.keys().any(|name| name.starts_with("blobs/"));
    (is_layout || has_listed_layers(archive.into_inner().reader, &files)).then_some(files)
}

/// Returns true if `manifest.json` lists layers that the tar contains. Their names differ between the programs that write images.
fn has_listed_layers(file: &mut File, files: &Files) -> bool {
    let Some((at, size)) = files.get("manifest.json").copied().filter(|(_, size)| *size <= LONGEST_TEXT) else {
        return false;
    };
    let mut text = Vec::new();
    let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.take(size).read_to_end(&mut text));
    let manifest: Option<Value> = read.ok().and_then(|_| serde_json::from_slice(&text).ok());
    let Some(manifest) = manifest else { return false };
    let mut layers = manifest[0]["Layers"].as_array().into_iter().flatten();
    layers.any(|layer| layer.as_str().is_some_and(|name| files.contains_key(name)))
}

/// Maximum number of files, far more than an image has layers.
const MOST_FILES: usize = 10_000;

pub(super) fn walk_tar(file: &File, files: &Files, of: &ArchivePlace<'_>) -> Result<&'static str, FileError> {
    let file = Arc::new(file.try_clone().map_err(|error| of.error_for("", error))?);
    let open = |name: &str| -> Result<Box<dyn Read>, FileError> {
        let (at, size) = files
            .get(name)
            .ok_or_else(|| of.error_for(name, FileProblem::damaged("is missing: the image refers to it")))?;
        Ok(Box::new(ReadAt { file: Arc::clone(&file), at: *at }.take(*size)))
    };
    let image =
        if files.contains_key("index.json") { image_of_layout(&open, of)? } else { image_of_docker(&open, of)? };
    walk_image(&image, &open, of)
}

/// Returns true if a directory is an image in the OCI layout.
pub(super) fn is_layout(dir: &Path) -> bool {
    dir.join("oci-layout").is_file() && dir.join("index.json").is_file()
}

pub(super) fn walk_layout(dir: &Path, of: &ArchivePlace<'_>) -> Result<&'static str, FileError> {
    let open = |name: &str| -> Result<Box<dyn Read>, FileError> {
        let file = File::open(dir.join(name)).map_err(|error| of.error_for(name, error))?;
        of.budget.add_packed(file.metadata().map_err(|error| of.error_for(name, error))?.len());
        Ok(Box::new(file))
    };
    walk_image(&image_of_layout(&open, of)?, &open, of)
}

type OpenBlob<'a> = &'a dyn Fn(&str) -> Result<Box<dyn Read>, FileError>;

fn read_json(name: &str, open: OpenBlob<'_>, of: &ArchivePlace<'_>) -> Result<Value, FileError> {
    let mut text = Vec::new();
    open(name)?.take(LONGEST_TEXT).read_to_end(&mut text).map_err(|error| of.error_for(name, error))?;
    serde_json::from_slice(&text)
        .map_err(|error| of.error_for(name, FileProblem::damaged(format!("is not the JSON of an image: {error}"))))
}

/// Returns the path of the blob with a digest such as `sha256:0123…`.
fn blob_path(descriptor: &Value) -> Option<String> {
    let (kind, digest) = descriptor["digest"].as_str()?.split_once(':')?;
    let is_plain =
        [kind, digest].iter().all(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric()));
    is_plain.then(|| format!("blobs/{kind}/{digest}"))
}

/// The paths of the parts of an image.
struct ContainerImage {
    /// The layers from the bottom up.
    layers: Vec<String>,
    /// The configuration, which defines how the image is started.
    config: Option<String>,
}

fn several_images(count: usize) -> FileProblem {
    FileProblem::unsupported(format!("contains {count} images: expected one"))
}

fn image_of_layout(open: OpenBlob<'_>, of: &ArchivePlace<'_>) -> Result<ContainerImage, FileError> {
    let mut value = read_json("index.json", open, of)?;
    // An index may refer to another index; a manifest lists layers.
    for _ in 0..super::MOST_NESTED {
        if let Some(layers) = value["layers"].as_array() {
            let layers = layers.iter().map(|layer| {
                blob_path(layer)
                    .ok_or_else(|| of.error_for("index.json", FileProblem::damaged("has no digest of a layer")))
            });
            return Ok(ContainerImage {
                layers: layers.collect::<Result<_, _>>()?,
                config: blob_path(&value["config"]),
            });
        }
        let manifests = value["manifests"]
            .as_array()
            .ok_or_else(|| of.error_for("index.json", FileProblem::damaged("has no manifest")))?;
        // An index may also contain attestations of the build.
        let images: Vec<&Value> =
            manifests.iter().filter(|one| one["annotations"]["vnd.docker.reference.type"].is_null()).collect();
        let [one] = images[..] else {
            return Err(of.error_for("index.json", several_images(images.len())));
        };
        let path = blob_path(one)
            .ok_or_else(|| of.error_for("index.json", FileProblem::damaged("has no digest of a manifest")))?;
        value = read_json(&path, open, of)?;
    }
    Err(of.error_for("index.json", FileProblem::damaged("has no image")))
}

fn image_of_docker(open: OpenBlob<'_>, of: &ArchivePlace<'_>) -> Result<ContainerImage, FileError> {
    const FILE: &str = "manifest.json";
    let value = read_json(FILE, open, of)?;
    let images = value.as_array().map_or(0, Vec::len);
    if images != 1 {
        return Err(of.error_for(FILE, several_images(images)));
    }
    let layers =
        value[0]["Layers"].as_array().ok_or_else(|| of.error_for(FILE, FileProblem::damaged("has no layers")))?;
    let layers: Option<Vec<String>> = layers.iter().map(|layer| layer.as_str().map(str::to_owned)).collect();
    let layers =
        layers.ok_or_else(|| of.error_for(FILE, FileProblem::damaged("contains a layer that is not a string")))?;
    Ok(ContainerImage { layers, config: value[0]["Config"].as_str().map(str::to_owned) })
}

/// The files that upper layers hide in lower layers.
#[derive(Default)]
struct Hidden {
    /// Paths that are hidden together with everything below them.
    gone: Names,
    /// Directories whose content is hidden.
    opaque: Names,
}

impl Hidden {
    fn hides(&self, name: &str) -> bool {
        let mut above = name.match_indices('/').map(|(at, _)| &name.as_bytes()[..at]);
        self.gone.contains(name.as_bytes())
            || self.opaque.contains(b"")
            || above.any(|dir| self.gone.contains(dir) || self.opaque.contains(dir))
    }

    /// Records what an entry of a layer hides in lower layers. Returns true if the entry itself is a file or a
    /// directory.
    fn add_entry(&mut self, name: &str, dir: bool) -> bool {
        let (parent, own) = name.rsplit_once('/').unwrap_or(("", name));
        match own.strip_prefix(".wh.") {
            Some(".wh..opq") => drop(self.opaque.insert(parent.as_bytes())),
            Some(deleted) if parent.is_empty() => drop(self.gone.insert(deleted.as_bytes())),
            Some(deleted) => drop(self.gone.insert(format!("{parent}/{deleted}").as_bytes())),
            None if dir => return true,
            None => {
                self.gone.insert(name.as_bytes());
                return true;
            }
        }
        false
    }
}

fn walk_image(image: &ContainerImage, open: OpenBlob<'_>, of: &ArchivePlace<'_>) -> Result<&'static str, FileError> {
    let inner = ArchivePlace { archive: of.archive.clone(), prefix: of.prefix.clone(), rooted: true, ..*of };
    // If the configuration cannot be read, it is ignored.
    if let Some(mut config) = image.config.as_ref().and_then(|name| open(name).ok()) {
        let mut text = String::new();
        if config.by_ref().take(LONGEST_TEXT).read_to_string(&mut text).is_ok() {
            of.hand_on("", super::Content::Config(text))?;
        }
    }
    let mut hidden = Hidden::default();
    for layer in image.layers.iter().rev() {
        let mut start = super::read_head(&mut open(layer)?).map_err(|error| of.error_for(layer, error))?;
        start.truncate(super::HEAD);
        // A layer without changes is a tar without members.
        if start.iter().all(|byte| *byte == 0) {
            continue;
        }
        let form = ArchiveFormat::from_magic(&start)
            .filter(|form| !matches!(form, ArchiveFormat::Zip | ArchiveFormat::Deb | ArchiveFormat::Rpm));
        let form = form.ok_or_else(|| {
            of.error_for(layer, FileProblem::unsupported("is not a layer: expected a tar archive, compressed or not"))
        })?;
        let mut below = Hidden::default();
        tape::for_each_member(tape::decompress(open(layer)?, form, &inner), &inner, &mut |name, dir| {
            below.add_entry(name, dir) && !hidden.hides(name)
        })?;
        hidden.gone.extend(&below.gone);
        hidden.opaque.extend(&below.opaque);
    }
    Ok("container image")
}
