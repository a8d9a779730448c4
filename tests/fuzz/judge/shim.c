/* The judge as the shim contains it. */
#undef CUDAGUARD_EXPORT_JUDGE
#define CUDAGUARD_ONE_FILE
#include "coverage.c"
#include "judge.c"

void judge_as_shim(const struct judge_manifest *manifest, const struct judge_facts *facts,
                   struct judge_result *result);

void judge_as_shim(const struct judge_manifest *manifest, const struct judge_facts *facts,
                   struct judge_result *result) {
  cudaguard_judge_start(manifest, facts, result);
}
