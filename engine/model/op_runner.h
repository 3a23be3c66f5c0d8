// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Runs ops on a context and makes the tensors that they take, from one memory resource: the step arena of inference,
// or the caching allocator of training.

#include <string>
#include <string_view>

#include "kernels/context/context.h"
#include "kernels/memory/memory.h"

namespace vitrine::engine {

/// A context, the memory that its tensors come from and the type of its activations. Belongs to the context's thread.
class OpRunner {
public:
    /// `compile`: not null: the kernels of the ops are compiled there instead of being run (a Meta context only).
    /// `ranks`: those that have the other parts of what the ops work on; null: nobody has.
    OpRunner(kernels::Context& context, kernels::MemoryResource& memory, kernels::DType compute,
             kernels::Prefetch* compile = nullptr, kernels::Communicator* ranks = nullptr)
        : context_(context), memory_(memory), compute_(compute), compile_(compile), ranks_(ranks) {}

    kernels::Context& context() const { return context_; }
    kernels::DType compute() const { return compute_; }
    kernels::Communicator* ranks() const { return ranks_; }

    kernels::Tensor make(base::MemoryCategory category, std::string_view name, kernels::DType dtype,
                         const kernels::Shape& shape) const {
        return {memory_, category, name, dtype, shape};
    }
    /// Of the type of activations.
    kernels::Tensor activation(std::string_view name, const kernels::Shape& shape) const {
        return make(base::MemoryCategory::Activations, name, compute_, shape);
    }

    /// Runs an op with the scratch that it needs.
    template <class Op> void run(Op op) const {
        const kernels::Tensor space = takeScratch(op);
        execute(op);
    }

    /// Makes the scratch of `op`; it must live as long as the op runs.
    template <class Op> kernels::Tensor takeScratch(Op& op) const {
        if constexpr (requires { op.scratch; }) {
            const std::uint64_t bytes = scratch(op, context_.traits());
            if (bytes > 0) {
                kernels::Tensor space = make(base::MemoryCategory::Workspace, std::string(Op::kName) + ".scratch",
                                             kernels::DType::U8, kernels::Shape{static_cast<std::int64_t>(bytes)});
                op.scratch = space.view();
                return space;
            }
        }
        return {};
    }

    /// Runs an op as it is.
    template <class Op> void execute(const Op& op) const {
        if (compile_ != nullptr) {
            check(op);
            compile_->add(op);
            return;
        }
        context_.run(op);
    }

private:
    kernels::Context& context_;
    kernels::MemoryResource& memory_;
    kernels::DType compute_;
    kernels::Prefetch* compile_;
    kernels::Communicator* ranks_;
};

} // namespace vitrine::engine
