// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Ranks that are threads of this process: bytes travel by copies in the memory that they share.

#include <memory>
#include <vector>

#include "kernels/core/communicator.h"

namespace vitrine::kernels {

/// A communicator for each of `size` ranks, in their order. They share a state that lives as long as any of them.
std::vector<std::unique_ptr<Communicator>> makeThreadRanks(int size);

/// Rank `rank` of `size` ranks that are not there, for plans in which one rank stands for all that are like it.
/// exchange() leaves what is received as it is. For Meta, where nothing reads values.
std::unique_ptr<Communicator> makeLoneRank(int rank, int size);

} // namespace vitrine::kernels
