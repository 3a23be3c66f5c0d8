// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/checkpoint/config_reader.h"
#include "engine/checkpoint/gguf_header.h"

namespace vitrine::engine {
namespace {

constexpr std::uint64_t kMaxHeader = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxName = 1024;
constexpr std::uint64_t kLeastValue = 14;  ///< bytes: a key of one byte, its type and a value of one byte
constexpr std::uint64_t kLeastTensor = 33; ///< bytes: a name of one byte and one axis
constexpr std::int64_t kDefaultAlignment = 32;

/// Bytes of an element; 0 for texts and arrays, which say it themselves.
std::uint64_t sizeOf(GgufValueType type) {
    constexpr std::array<std::uint8_t, 13> kSizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return kSizes[static_cast<std::size_t>(type)];
}

} // namespace

/// Reads one header. The parser is where the bytes of the file are; it never looks beyond them.
class GgufParser {
public:
    GgufParser(GgufHeader& header, std::uint64_t fileBytes)
        : header_(header), bytes_(*header.bytes_), fileBytes_(fileBytes) {}

    /// False: the header goes on after the bytes that are here.
    bool parse() {
        try {
            readAll();
            return true;
        } catch (const MoreBytes&) {
            return false;
        }
    }

private:
    struct MoreBytes {};

    void readAll() {
        if (take(kGgufMagic.size(), "magic") != kGgufMagic) {
            header_.bad("magic", "is not \"GGUF\"; this is no GGUF file");
        }
        checkVersion(takeNumber<std::uint32_t>("version"));
        const std::uint64_t tensors = takeCount("tensor_count", kLeastTensor);
        const std::uint64_t values = takeCount("metadata_kv_count", kLeastValue);
        header_.values_.reserve(values);
        for (std::uint64_t i = 0; i < values; ++i) {
            header_.values_.push_back(takeValue());
        }
        sortUnique(header_.values_, &GgufValue::key);
        header_.tensors_.reserve(tensors);
        for (std::uint64_t i = 0; i < tensors; ++i) {
            header_.tensors_.push_back(takeTensor());
        }
        placeTensors();
        sortUnique(header_.tensors_, &GgufTensor::name);
    }

    void checkVersion(std::uint32_t version) const {
        if (version == 2 || version == 3) {
            return;
        }
        if (const std::uint32_t swapped = __builtin_bswap32(version); swapped == 2 || swapped == 3) {
            header_.unsupported("version", "the file is big-endian; only little-endian files are read");
        }
        header_.unsupported("version", fmt::format("{} is not supported; 2 and 3 are", version));
    }

    /// Throws unless the next `count` bytes are here.
    void require(std::uint64_t count, std::string_view field) const {
        if (count > fileBytes_ - position_) {
            header_.bad(field, fmt::format("needs {} bytes at {}, but the file ends at {}; it is damaged or incomplete",
                                           count, position_, fileBytes_));
        }
        if (count > kMaxHeader - std::min(position_, kMaxHeader)) {
            header_.unsupported(field, fmt::format("the header has more than {} bytes", kMaxHeader));
        }
        if (count > bytes_.size() - position_) {
            throw MoreBytes();
        }
    }

    std::string_view take(std::uint64_t count, std::string_view field) {
        require(count, field);
        const std::string_view out = bytes_.substr(position_, count);
        position_ += count;
        return out;
    }

    template <class T> T takeNumber(std::string_view field) {
        const std::string_view bytes = take(sizeof(T), field);
        return ggufNumber<T>(&bytes.front());
    }

    /// How many things of `least` bytes or more follow.
    std::uint64_t takeCount(std::string_view field, std::uint64_t least) {
        const auto count = takeNumber<std::uint64_t>(field);
        if (count > (fileBytes_ - position_) / least) {
            header_.bad(field, fmt::format("{} do not fit into the {} bytes of the file; it is damaged or incomplete",
                                           count, fileBytes_));
        }
        require(count * least, field); // so that no room is made for more than the bytes here can be
        return count;
    }

    std::string_view takeText(std::string_view field) { return take(takeNumber<std::uint64_t>(field), field); }

    std::string_view takeName(std::string_view field) {
        const std::string_view name = takeText(field);
        if (name.empty() || name.size() > kMaxName) {
            header_.bad(field, fmt::format("a name has {} bytes; 1 to {} are allowed", name.size(), kMaxName));
        }
        return name;
    }

    GgufValueType takeType(std::string_view field) {
        const auto type = takeNumber<std::uint32_t>(field);
        if (type > static_cast<std::uint32_t>(GgufValueType::F64)) {
            header_.bad(field, fmt::format("has the type {}, which is not known", type));
        }
        return static_cast<GgufValueType>(type);
    }

    GgufValue takeValue() {
        GgufValue out;
        out.key = takeName("metadata");
        const std::string field = quotedText(out.key);
        out.type = takeType(field);
        std::uint64_t count = 1;
        if (out.type == GgufValueType::Array) {
            out.array = true;
            out.type = takeType(field);
            if (out.type == GgufValueType::Array) {
                header_.unsupported(field, "arrays of arrays are not supported");
            }
            const std::uint64_t size = sizeOf(out.type);
            count = takeCount(field, size == 0 ? sizeof(std::uint64_t) : size);
        }
        const std::uint64_t begin = position_;
        if (out.type == GgufValueType::Text) {
            for (std::uint64_t i = 0; i < count; ++i) {
                takeText(field);
            }
        } else {
            take(count * sizeOf(out.type), field);
        }
        // A header is smaller than 2^32 bytes.
        out.data = bytes_.data() + begin;
        out.bytes = static_cast<std::uint32_t>(position_ - begin);
        out.count = static_cast<std::uint32_t>(count);
        return out;
    }

    GgufTensor takeTensor() {
        GgufTensor out;
        out.name = takeName("tensor name");
        const std::string field = quotedText(out.name);
        out.axes = takeNumber<std::uint32_t>(field);
        if (out.axes == 0 || out.axes > GgufTensor::kMostAxes) {
            header_.bad(field, fmt::format("has {} axes; 1 to {} are allowed", out.axes, GgufTensor::kMostAxes));
        }
        std::int64_t elements = 1;
        for (std::uint32_t axis = 0; axis < out.axes; ++axis) {
            const auto size = takeNumber<std::uint64_t>(field);
            if (size == 0 || size > INT64_MAX ||
                __builtin_mul_overflow(elements, static_cast<std::int64_t>(size), &elements)) {
                header_.bad(field, fmt::format("has an axis of {} elements", size));
            }
            out.dims[out.axes - 1 - axis] = static_cast<std::int64_t>(size);
        }
        const auto number = takeNumber<std::uint32_t>(field);
        out.type = ggufType(number);
        if (out.type == nullptr) {
            header_.unsupported(
                field, fmt::format("has the type {}, which is not known; {} are supported", number, ggufTypeNames()));
        }
        const std::int64_t row = out.dims[out.axes - 1];
        std::int64_t bytes = 0;
        if (row % out.type->elements != 0 ||
            __builtin_mul_overflow(elements / out.type->elements, out.type->bytes, &bytes)) {
            header_.bad(field, fmt::format("has rows of {} elements, which are not whole blocks of {} ({})", row,
                                           out.type->elements, out.type->name));
        }
        out.bytes = static_cast<std::uint64_t>(bytes);
        out.offset = takeNumber<std::uint64_t>(field);
        return out;
    }

    /// Offsets count from where the data begin. Tensors must lie inside the file and not in each other.
    void placeTensors() {
        const std::int64_t alignment = header_.integer("general.alignment").value_or(kDefaultAlignment);
        if (alignment < 1 || alignment > (1 << 20) || (alignment & (alignment - 1)) != 0) {
            header_.bad("general.alignment", fmt::format("{} is no power of two up to 1048576", alignment));
        }
        const auto unit = static_cast<std::uint64_t>(alignment);
        const std::uint64_t start = (position_ + unit - 1) / unit * unit;
        std::ranges::sort(header_.tensors_, {}, &GgufTensor::offset);
        std::uint64_t end = 0;
        for (GgufTensor& tensor : header_.tensors_) {
            const std::string field = quotedText(tensor.name);
            if (tensor.offset % unit != 0) {
                header_.bad(field, fmt::format("begins at {}, which is no multiple of {}", tensor.offset, unit));
            }
            if (tensor.offset < end) {
                header_.bad(field, fmt::format("begins at {}, inside the tensor before it", tensor.offset));
            }
            if (start > fileBytes_ || tensor.offset > fileBytes_ - start ||
                tensor.bytes > fileBytes_ - start - tensor.offset) {
                header_.bad(field,
                            fmt::format("has {} bytes at {}, but the file ends at {}; it is damaged or incomplete",
                                        tensor.bytes, tensor.offset, fileBytes_));
            }
            end = tensor.offset + tensor.bytes;
            tensor.offset += start;
        }
    }

    template <class T> void sortUnique(std::vector<T>& items, std::string_view T::* name) {
        std::ranges::sort(items, {}, name);
        const auto twice = std::ranges::adjacent_find(items, {}, name);
        if (twice != items.end()) {
            header_.bad(quotedText((*twice).*name), "is there twice");
        }
    }

    GgufHeader& header_;
    std::string_view bytes_;
    std::uint64_t fileBytes_;
    std::uint64_t position_ = 0;
};

std::optional<GgufHeader> GgufHeader::parse(std::string bytes, std::uint64_t fileBytes, const std::string& file) {
    GgufHeader out;
    out.file_ = file;
    out.bytes_ = std::make_shared<const std::string>(std::move(bytes));
    return GgufParser(out, fileBytes).parse() ? std::optional(std::move(out)) : std::nullopt;
}

} // namespace vitrine::engine
