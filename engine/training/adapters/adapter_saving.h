// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Writes adapters in PEFT's layout (adapter_files.h).

#include <map>
#include <span>
#include <string>
#include <vector>

#include "engine/training/adapters/adapter_files.h"
#include "kernels/core/tensor.h"

namespace vitrine::engine {

/// The values of an adapter's part for one linear.
struct AdapterPartValues {
    std::string parameter; ///< Parameter::name
    kernels::Shape aShape; ///< (rank, in) or (experts, rank, in)
    kernels::Shape bShape; ///< (out, rank) or (experts, out, rank)
    std::vector<float> a;
    std::vector<float> b;
    bool embedding = false; ///< A is (rank, vocab), B (hidden, rank)
};

/// Sets the target_modules and target_parameters of `config` so that they name the linears `adapted` (Parameter::name)
/// and no others of `parameters`, which are all of the model. A name is short, "q_proj", where all linears with it are
/// adapted; else it is whole.
void setTargets(AdapterConfig& config, std::span<const Parameter> parameters, const std::vector<std::string>& adapted);

/// Writes the tensors alone, with those that `before` has whole, under the names of PEFT's file. Throws BadInput when
/// the file cannot be written.
void writeAdapterTensors(const std::string& path, const std::vector<AdapterPartValues>& parts,
                         const std::map<std::string, std::string>& metadata = {{"format", "pt"}},
                         const AdapterFile* before = nullptr);

/// Writes both files, each of which appears when it is complete; makes the folder where there is none. The values are
/// stored as float32. What `before` has whole is stored as it is there; null: nothing. REQUIRES that `config` names the
/// parts as its targets (see setTargets) and has their ranks. Throws BadInput when a file cannot be written.
void writeAdapter(const std::string& folder, const AdapterConfig& config, const std::vector<AdapterPartValues>& parts,
                  const AdapterFile* before = nullptr);

} // namespace vitrine::engine
