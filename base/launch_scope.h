// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The scope for which the calling thread works at this moment. Tracers keep it up to date. A profiler reads it in
// callbacks that run while this thread launches work on a device (a kernel, a copy, a graph).

#include "base/trace.h"

namespace vitrine::base {

/// Of the calling thread; 0 outside of scopes.
ScopeId launchScope();
void setLaunchScope(ScopeId scope);

} // namespace vitrine::base
