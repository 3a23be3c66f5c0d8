// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Fields that configs of GPTQ and AWQ share, as AutoGPTQ, AutoAWQ, GPTQModel and transformers write them.

#include "engine/quant/packing.h"
#include "engine/quant/quantization_fields.h"

namespace vitrine::engine {

/// Reads "dynamic", the rules of single modules: those that leave modules out join `out.ignored`, and those that give a
/// module other numbers are Unsupported. Refuses what changes the meaning of the tensors, and takes note of fields that
/// only say how the file was made.
void readGptqRules(const QuantizationFields& fields, Quantization& out);

} // namespace vitrine::engine
