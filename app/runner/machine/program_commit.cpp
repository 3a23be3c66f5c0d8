// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "app/runner/machine/environment.h"
#include "vitrine_commit.h" // made by cmake/WriteCommit.cmake

namespace vitrine::app {

std::string_view programCommit() {
    return VITRINE_COMMIT;
}

} // namespace vitrine::app
