// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/attention/device_blocks.h"

#include "kernels/memory/memory.h"
#include "kernels/memory/resource.h"
#include "kernels/ops/attention/block_counts.h"
#include "kernels/program/emitter.h"

namespace vitrine::engine {

namespace {

using kernels::DType;
using kernels::Shape;
using kernels::Tensor;

class DeviceBlocks final : public kernels::BlockEvaluator {
public:
    DeviceBlocks(kernels::Context& context, const kernels::BoundProgram& mask, const kernels::BlockMaskShape& shape)
        : context_(context) {
        op_.mask = mask;
        op_.shape = shape;
    }

    void count(std::span<const kernels::BlockPlace> places, bool exact, std::span<std::int32_t> counts) override {
        constexpr std::size_t kStretch = std::size_t{1} << 20;
        static_assert(sizeof(kernels::BlockPlace) == 4 * sizeof(std::int32_t));
        op_.exact = exact;
        const auto most = static_cast<std::int64_t>(std::min(places.size(), kStretch));
        const Tensor placesMemory = make("block places", Shape{most, 4});
        const Tensor countsMemory = make("block counts", Shape{most});
        for (std::size_t begin = 0; begin < places.size(); begin += kStretch) {
            context_.throwIfStopped();
            const std::size_t count = std::min(kStretch, places.size() - begin);
            op_.places = placesMemory.view();
            op_.places.shape = Shape{static_cast<std::int64_t>(count), 4};
            op_.counts = countsMemory.view();
            op_.counts.shape = Shape{static_cast<std::int64_t>(count)};
            context_.upload(places.data() + begin, op_.places.data, op_.places.bytes());
            context_.run(op_);
            context_.download(op_.counts.data, counts.data() + begin, op_.counts.bytes());
        }
    }

    // Less is done sooner by a few cores than by compiling a kernel.
    std::int64_t worthElements() const override { return std::int64_t{1} << 26; }

private:
    Tensor make(std::string_view name, const Shape& shape) {
        return {context_.memory().general(), base::MemoryCategory::BlockMask, name, DType::I32, shape};
    }

    kernels::Context& context_;
    kernels::BlockCounts op_;
};

} // namespace

std::unique_ptr<kernels::BlockEvaluator> deviceBlocks(kernels::Context& context, const kernels::BoundProgram& mask,
                                                      const kernels::BlockMaskShape& shape) {
    if (!context.can().compilesKernels || mask.empty() || !kernels::isExactOnDevice(*mask.program)) {
        return nullptr;
    }
    return std::make_unique<DeviceBlocks>(context, mask, shape);
}

} // namespace vitrine::engine
