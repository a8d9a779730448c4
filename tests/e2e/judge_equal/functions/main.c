#include "check.h"

#include "text.c"
#include "kernels.c"
#include "files.c"
#include "findings.c"
#include "images.c"
#include "judge.c"
#include "answers.c"
#include "child.c"
#include "cudnn.c"
#include "process.c"

int main(void) {
  alarm(10);
  close(0); /* a file that is opened may get this number */
  check_numbers();
  check_texts();
  check_sanitized();
  check_coverage();
  check_lists_of_gpus();
  check_errors_of_dlopen();
  check_seen_texts();
  check_rows_of_gpus();
  check_headers_of_ptx();
  check_segments();
  check_bare_code();
  check_rows_with_text();
  check_shared_rows();
  check_headers_of_files();
  check_symbols();
  check_long_chains();
  check_path_elements();
  check_cache();
  check_notes();
  check_note_headers();
  check_links();
  check_lists_of_directories();
  check_order_of_search();
  check_responsibility();
  check_room();
  check_room_for_notes();
  check_stored_texts();
  check_templates();
  check_order();
  check_same_cause();
  check_texts_of_gpus();
  check_makers();
  check_row_of_cudart();
  check_row_of_shared_cudart();
  check_unreadable_notes();
  check_judged_call();
  check_skipped_probe();
  check_not_judged();
  check_versions_of_cudnn();
  check_values_of_cudnn();
  check_rows_of_drivers();
  check_declared_rows();
  check_values_of_driver();
  check_allowed_needs();
  check_report_names();
  check_mapped();
  check_collected_notes();
  check_kept_notes();
  check_dynamic_tables();
  check_inherited_rpaths();
  check_segments_of_ptx();
  check_judge();
  check_children();
  check_answers_of_driver();
  check_answers_of_cudnn();
  check_detected_cudnn();
  check_written();
  check_names_of_process();
  check_verdict_of_process();
  check_printed();
  return 0;
}
