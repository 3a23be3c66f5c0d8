# SPDX-FileCopyrightText: The Vitrine authors
# SPDX-License-Identifier: GPL-3.0-only
# Writes OUTPUT, the source of programCommit() for the commit of SOURCE: "unknown" outside git, "-dirty" at the end when tracked files were
# changed. A script, so that it runs at each build; the file changes only when the commit does.
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=* WORKING_DIRECTORY ${SOURCE}
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(NOT failed EQUAL 0 OR NOT commit MATCHES "^[0-9a-f]+(-dirty)?$")
  set(commit unknown)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#include \"app/runner/machine/environment.h\"

std::string_view vitrine::app::programCommit() {
    return \"${commit}\";
}
")
