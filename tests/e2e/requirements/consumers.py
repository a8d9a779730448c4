"""Evaluates requirement formats with the code of their consumers: rattler (conda), variantlib (wheel variants), the schemas of
Kubernetes and CycloneDX, and the validator of spdx-tools.

Usage: consumers.py DIR, the directory of the component `consumers`. Each line of stdin is a request in JSON. Each line of stdout is the
answer: the accepted machines, or the errors in the text."""
import functools, json, os, sys

PART = sys.argv[1]
sys.path.insert(0, os.path.join(PART, "lib"))
sys.dont_write_bytecode = True


def conda(text, machines):
    """CEP 30 and CEP 46: returns whether the virtual packages of each machine match. `__cuda_arch` is the lowest compute capability."""
    from rattler import MatchSpec, PackageRecord
    from rattler.package import BuildString
    from rattler_build import RenderConfig, Stage0Recipe, VariantConfig

    variants = [line[1:] for line in text.splitlines() if line.startswith("#   least_driver: ")]
    recipe = Stage0Recipe.from_yaml('package:\n  name: files\n  version: "1.0"\n' + text)
    rendered = recipe.render(VariantConfig.from_yaml("\n".join(variants) or "{}"), RenderConfig())
    requirements = [of.recipe.requirements.to_dict() for of in rendered]
    packages = [of.get("run", []) + of.get("run_constraints", []) for of in requirements]
    packages = [[MatchSpec(str(spec)) for spec in specs if str(spec).startswith("__")] for specs in packages]
    assert len(packages) == max(1, "".join(variants).count('"') // 2), text

    @functools.cache
    def record(name, version):
        return PackageRecord(name=name, version=version, build=BuildString("0"), build_number=0, subdir="linux-64")

    def accepts(machine):
        virtual = {"__cuda": machine["cuda"], "__cuda_arch": min(machine["gpus"])}
        of = {name: record(name, "%d.%d" % tuple(version)) for name, version in virtual.items()}
        return any(all(spec.matches(of[spec.name.normalized]) for spec in specs) for specs in packages)
    return [accepts(machine) for machine in machines]


def conda_spec(text, versions):
    """Returns whether the spec matches one of these releases."""
    from rattler import MatchSpec, PackageRecord
    from rattler.package import BuildString

    spec = MatchSpec(text)

    def accepts(version):
        build = BuildString("0")
        return spec.matches(PackageRecord(name=spec.name.normalized, version=version, build=build, build_number=0, subdir="linux-64"))
    return any(accepts(version) for version in versions)


def wheel_variant(text, machines):
    """Returns whether each machine accepts one of the wheels, by the rules of wheelnext/nvidia-variant-provider, plugin.py."""
    from variantlib.models.variant import VariantDescription, VariantProperty
    from variantlib.resolver.lib import filter_variants

    wheels = [
        VariantDescription(properties=[VariantProperty.from_str(line) for line in of.splitlines() if line.startswith("nvidia")])
        for of in text.split("# variant: ") if "\nnvidia" in of
    ]

    @functools.cache
    def accepts(cuda, newest):
        def of(feature, value):
            return VariantProperty(namespace="nvidia", feature=feature, value=value)
        drivers = [(major, minor) for major in range(11, 16) for minor in range(21) if (major, minor) <= cuda]
        properties = [of("cuda_version_lower_bound", "%d.%d" % version) for version in drivers]
        if newest >= (5, 0) and cuda >= (11, 0):
            properties += [of("sm_arch", "%d%d_real" % (newest[0], minor)) for minor in range(newest[1] + 1)]
            properties.append(of("sm_arch", "%d0_virtual" % newest[0]))
        return bool(list(filter_variants(wheels, properties, filter_values=True)))
    return [accepts(tuple(machine["cuda"]), tuple(max(machine["gpus"]))) for machine in machines]


@functools.cache
def schema(folder, name):
    import fastjsonschema

    def file(uri):
        with open(os.path.join(PART, "schemas", folder, uri.partition("#")[0].rpartition("/")[2])) as file:
            return json.load(file)
    formats = dict.fromkeys(["int-or-string", "int32", "int64", "double", "byte", "date-time"], lambda value: True)
    formats.update(dict.fromkeys(["idn-email", "iri-reference"], lambda value: True) if folder == "cyclonedx" else {})
    of = dict(file(name), **{"$id": "http://schemas.invalid/" + name})
    return fastjsonschema.compile(of, handlers={"http": file, "https": file}, formats=formats, use_default=False)


def valid(folder, name, value):
    import fastjsonschema
    try:
        schema(folder, name)(value)
    except fastjsonschema.JsonSchemaException as error:
        return "%s: %s" % (name, error)


def kubernetes(text, kinds):
    import yaml
    all = list(yaml.safe_load_all(text))
    if kinds == ["pod-v1"]:
        spec = dict(all[0], containers=[{"name": "main", "image": "main"}])
        all = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "main"}, "spec": spec}]
    if len(all) != len(kinds):
        return "%d objects, expected %d" % (len(all), len(kinds))
    return next(filter(None, (valid("kubernetes", kind + ".json", value) for kind, value in zip(kinds, all))), None)


def spdx(text):
    from spdx_tools.spdx.parser.error import SPDXParsingError
    from spdx_tools.spdx.parser.jsonlikedict.json_like_dict_parser import JsonLikeDictParser
    from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document
    try:
        document = JsonLikeDictParser().parse(json.loads(text))
    except SPDXParsingError as error:
        return "; ".join(error.get_messages())
    return "; ".join(message.validation_message for message in validate_full_spdx_document(document)) or None


FORMS = {
    "conda": conda,
    "conda-spec": conda_spec,
    "wheel-variant": wheel_variant,
    "k8s-dra": lambda text: kubernetes(text, ["resourceclaimtemplate-resource-v1"]),
    "k8s-affinity": lambda text: kubernetes(text, ["pod-v1"]),
    "cyclonedx": lambda text: valid("cyclonedx", "bom-1.6.SNAPSHOT.schema.json", json.loads(text)),
    "spdx": spdx,
}

for line in sys.stdin:
    request = json.loads(line)
    of = FORMS[request["form"]]
    print(json.dumps(of(request["text"], *([request["machines"]] if "machines" in request else []))))
