// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The bottom of the stack: host memory, and the virtual addresses of Meta.

#include <memory>

#include "kernels/memory/resource.h"

namespace vitrine::kernels {

/// Pages of this process, zero-filled on first touch, given back to the system on free.
std::unique_ptr<MemoryResource> makeHostResource(base::MemorySpace space);

/// Addresses that must not be accessed. Addresses that allocate gave are not given out again; those of a released range
/// (growing.h) are.
std::unique_ptr<MemoryResource> makeMetaResource(base::MemorySpace space);

} // namespace vitrine::kernels
