// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Which scope the calling thread works for at this moment. A profiler that is called back while this thread launches work
// on a device (a kernel, a copy, a graph) reads it there. Tracers keep it up to date.

#include "base/trace.h"

namespace vitrine::base {

/// Of the calling thread; 0 outside of scopes.
ScopeId launchScope();
void setLaunchScope(ScopeId scope);

} // namespace vitrine::base
