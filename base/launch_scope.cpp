// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "base/launch_scope.h"

namespace vitrine::base {

namespace {
thread_local ScopeId current;
} // namespace

ScopeId launchScope() {
    return current;
}

void setLaunchScope(ScopeId scope) {
    current = scope;
}

} // namespace vitrine::base
