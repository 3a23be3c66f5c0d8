// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "engine/chat/jinja/text.h"

#include <utility>

namespace vitrine::engine::jinja {

Text::Text(std::string bytes, Origin origin) : bytes_(std::move(bytes)) {
    if (origin != kTemplate) {
        origins_.assign(bytes_.size(), origin);
    }
}

void Text::append(const Text& other, std::size_t begin, std::size_t end) {
    if (!other.origins_.empty()) {
        origins_.resize(bytes_.size(), kTemplate);
        origins_.insert(origins_.end(), other.origins_.begin() + static_cast<std::ptrdiff_t>(begin),
                        other.origins_.begin() + static_cast<std::ptrdiff_t>(end));
    } else if (!origins_.empty()) {
        origins_.resize(bytes_.size() + (end - begin), kTemplate);
    }
    bytes_.append(other.bytes_, begin, end - begin);
}

void Text::append(std::string_view bytes, Origin origin) {
    if (origin != kTemplate || !origins_.empty()) {
        origins_.resize(bytes_.size(), kTemplate);
        origins_.resize(bytes_.size() + bytes.size(), origin);
    }
    bytes_ += bytes;
}

Text Text::part(std::size_t begin, std::size_t end) const {
    Text out;
    out.append(*this, begin, end);
    return out;
}

void Text::markGenerated() {
    origins_.resize(bytes_.size(), kTemplate);
    for (Origin& origin : origins_) {
        origin |= kGenerated;
    }
}

} // namespace vitrine::engine::jinja
