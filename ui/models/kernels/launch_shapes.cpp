// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/kernels/launch_shapes.h"

#include <QStringList>
#include <nlohmann/json.hpp>

#include "base/json_values.h"
#include "ui/models/common/format.h"

namespace vitrine::ui {

namespace {

QString extent(const nlohmann::json& row, const char* key) {
    const auto found = row.find(key);
    QStringList parts;
    if (found != row.end() && found->is_array()) {
        for (const nlohmann::json& part : *found) {
            parts << (part.is_number_unsigned() ? countText(part.get<std::int64_t>()) : unknownText());
        }
    }
    return parts.join(QStringLiteral(" × "));
}

} // namespace

std::map<std::string, LaunchShape> launchShapes(const std::string& json) {
    std::map<std::string, LaunchShape> shapes;
    const nlohmann::json rows = nlohmann::json::parse(json, nullptr, false);
    if (!rows.is_array()) {
        return shapes;
    }
    for (const nlohmann::json& row : rows) {
        if (!row.is_object()) {
            continue;
        }
        LaunchShape shape;
        shape.grid = extent(row, "grid");
        shape.block = extent(row, "block");
        shape.cluster = extent(row, "cluster");
        if (shape.cluster == QStringLiteral("0 × 0 × 0") || shape.cluster == QStringLiteral("1 × 1 × 1")) {
            shape.cluster.clear();
        }
        shape.registers = static_cast<int>(base::numberAt(row, "registers").value_or(0));
        shape.sharedBytes = base::bytesAt(row, "shared_bytes").value_or(0);
        shape.localBytes = base::bytesAt(row, "local_bytes").value_or(0);
        const auto same = row.find("same_shape");
        shape.same = same == row.end() || !same->is_boolean() || same->get<bool>();
        shapes[base::textAt(row, "name")] = shape;
    }
    return shapes;
}

} // namespace vitrine::ui
