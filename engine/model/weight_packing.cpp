// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/model/weight_packing.h"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "base/error.h"
#include "kernels/context/context.h"
#include "kernels/core/floats.h"
#include "kernels/formats/weight_formats.h"

namespace vitrine::engine {
namespace {

constexpr std::int64_t kPackedPart = std::int64_t{8} << 20; ///< values that are in host memory at a time
constexpr std::int64_t kReadGrain = std::int64_t{1} << 20;  ///< bytes

std::string labelOf(const WeightSource& source) {
    return source.location == nullptr ? source.spec.name
                                      : fmt::format("{}: {}", source.location->file->path(), source.spec.name);
}

} // namespace

void readParallel(base::ThreadPool& pool, const Checkpoint::Location& location, std::uint64_t offset,
                  std::span<std::byte> bytes) {
    pool.parallelFor(static_cast<std::int64_t>(bytes.size()), kReadGrain,
                     [&](std::int64_t begin, std::int64_t end, int) {
                         location.file->read(*location.entry, offset + static_cast<std::uint64_t>(begin),
                                             bytes.data() + begin, static_cast<std::uint64_t>(end - begin));
                     });
}

PackedValues packDense(kernels::WeightFormat format, const WeightSource& source, base::ThreadPool& pool,
                       kernels::Context& context, const ReadDense& read) {
    const kernels::DType dtype = source.spec.dtype;
    const std::int64_t group = kernels::packedFormat(format).group;
    const std::int64_t count = kernels::Shape(source.spec.shape).count();
    ValuePacker packer(format, count);
    std::vector<std::byte> part;
    for (std::int64_t first = 0; first < count; first += kPackedPart) {
        context.throwIfStopped();
        const std::int64_t values = std::min(kPackedPart, count - first);
        part.resize(kernels::bytesOf(dtype, values));
        read(kernels::bytesOf(dtype, first), part);
        pool.parallelFor(values / group, 1024, [&](std::int64_t begin, std::int64_t end, int) {
            std::vector<float> floats(static_cast<std::size_t>((end - begin) * group));
            kernels::loadFloats(dtype, part.data(), begin * group, (end - begin) * group, floats.data());
            try {
                packer.pack(first + begin * group, floats);
            } catch (const base::BadInput& error) {
                throw base::BadInput(fmt::format("{}: {}", labelOf(source), error.message()));
            }
        });
    }
    return packer.finish();
}

} // namespace vitrine::engine
