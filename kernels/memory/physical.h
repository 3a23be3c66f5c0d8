// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The bottom of the stack: host memory, and the virtual addresses of Meta.

#include <memory>

#include "kernels/memory/resource.h"

namespace vitrine::kernels {

/// Pages of this process, zero-filled on first touch, given back to the system on free.
std::unique_ptr<MemoryResource> makeHostResource(base::MemorySpace space);

/// Addresses that nobody may read. What allocate gave is not given out again; a released range (growing.h) is.
std::unique_ptr<MemoryResource> makeMetaResource(base::MemorySpace space);

} // namespace vitrine::kernels
