# Fails where KEPT is not what was MADE.
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files "${KEPT}" "${MADE}" RESULT_VARIABLE _differ)
if(_differ)
  message(FATAL_ERROR "${KEPT} is not what the descriptions generate: run `ninja -C build docs` and commit it.")
endif()
