// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/checkpoint/overlay_checkpoint.h"

#include <algorithm>
#include <span>
#include <utility>

#include "engine/checkpoint/made_tensor_file.h"
#include "engine/checkpoint/tensor_table.h"
#include "kernels/core/floats.h"

namespace vitrine::engine {

using kernels::DType;

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 20; ///< that are made at once

std::int64_t rowLength(const std::vector<std::int64_t>& shape) {
    return shape.size() < 2 ? 1 : shape.back();
}

/// Rows that are made at once.
std::int64_t mostRows(const std::vector<std::int64_t>& shape) {
    return std::max<std::int64_t>(1, kMostElements / rowLength(shape));
}

void storeRows(const OverlaidTensor& tensor, std::int64_t first, std::int64_t count, std::span<std::byte> out) {
    const std::int64_t elements = count * rowLength(tensor.shape);
    std::vector<float> values(static_cast<std::size_t>(elements));
    tensor.rows(first, count, values);
    kernels::storeFloats(tensor.dtype, values.data(), elements, out.data(), 0);
}

std::vector<TensorEntry> overlaidEntries(const std::vector<OverlaidTensor>& tensors) {
    std::vector<TensorEntry> out;
    std::uint64_t offset = 0;
    for (const OverlaidTensor& tensor : tensors) {
        const std::uint64_t bytes = kernels::bytesOf(tensor.dtype, kernels::Shape(tensor.shape).count());
        out.push_back({tensor.name, tensor.dtype, tensor.shape, offset, bytes});
        offset += bytes;
    }
    return out;
}

class OverlayFile final : public MadeTensorFile {
public:
    OverlayFile(std::vector<OverlaidTensor> tensors, std::string path, std::string identity)
        : MadeTensorFile(std::move(path), std::move(identity), overlaidEntries(tensors)), tensors_(std::move(tensors)) {
    }

protected:
    Rows rowsOf(std::size_t tensor) const override {
        const OverlaidTensor& made = tensors_[tensor];
        return {static_cast<std::int64_t>(kernels::bytesOf(made.dtype, rowLength(made.shape))), mostRows(made.shape)};
    }
    void makeRows(std::size_t tensor, std::int64_t first, std::int64_t count, std::span<std::byte> out) const override {
        storeRows(tensors_[tensor], first, count, out);
    }

private:
    std::vector<OverlaidTensor> tensors_;
};

class OverlayCheckpoint final : public TensorTable {
public:
    OverlayCheckpoint(std::shared_ptr<const Checkpoint> base, std::vector<OverlaidTensor> tensors, std::string path,
                      std::string identity)
        : TensorTable(base->folder()), base_(std::move(base)),
          file_(std::move(tensors), std::move(path), std::move(identity)) {
        for (const TensorEntry& entry : file_.tensors()) {
            add(file_, entry);
        }
        for (const auto& [name, location] : base_->tensors()) {
            if (find(name) == nullptr && find("model." + name) == nullptr) {
                add(*location.file, *location.entry);
            }
        }
    }

private:
    std::shared_ptr<const Checkpoint> base_;
    OverlayFile file_;
};

} // namespace

RowMaker rowsOf(const SafetensorsFile& file, const TensorEntry& entry) {
    return [&file, &entry](std::int64_t first, std::int64_t count, std::span<float> out) {
        const std::int64_t length = rowLength(entry.shape);
        std::vector<std::byte> bytes(kernels::bytesOf(entry.dtype, count * length));
        file.read(entry, kernels::bytesOf(entry.dtype, first * length), bytes.data(), bytes.size());
        kernels::loadFloats(entry.dtype, bytes.data(), 0, count * length, out.data());
    };
}

bool equalValues(const OverlaidTensor& a, const OverlaidTensor& b) {
    const std::int64_t length = rowLength(a.shape);
    const std::int64_t rows = kernels::Shape(a.shape).count() / length;
    std::vector<std::byte> first;
    std::vector<std::byte> second;
    for (std::int64_t row = 0; row < rows; row += mostRows(a.shape)) {
        const std::int64_t count = std::min(mostRows(a.shape), rows - row);
        first.resize(kernels::bytesOf(a.dtype, count * length));
        second.resize(kernels::bytesOf(b.dtype, count * length));
        storeRows(a, row, count, first);
        storeRows(b, row, count, second);
        if (first != second) {
            return false;
        }
    }
    return true;
}

std::shared_ptr<const Checkpoint> overlayCheckpoint(std::shared_ptr<const Checkpoint> base,
                                                    std::vector<OverlaidTensor> tensors, std::string path,
                                                    std::string identity) {
    return std::make_shared<const OverlayCheckpoint>(std::move(base), std::move(tensors), std::move(path),
                                                     std::move(identity));
}

} // namespace vitrine::engine
