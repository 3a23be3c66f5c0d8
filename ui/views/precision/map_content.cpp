// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/precision/map_content.h"

#include <QObject>
#include <limits>

namespace vitrine::ui {

HeatMapContent roleContent(const PrecisionDataPtr& data, const PrecisionMap& cells, const ErrorScale& scale,
                           std::size_t format) {
    HeatMapContent content;
    for (const std::string& role : cells.roles) {
        content.rows.push_back(QString::fromStdString(role));
    }
    content.values = cellMeans(data->result, cells, scale.measure, format);
    content.kept = keptCells(data->result, cells, format);
    content.columns = cells.layers;
    content.scale = scale;
    content.words = [data, &cells, measure = scale.measure, format](int row, int column) {
        return cellWords(data->result, cells, measure, format, static_cast<std::size_t>(row), column);
    };
    return content;
}

HeatMapContent expertContent(const PrecisionDataPtr& data, const PrecisionMap& cells, const ErrorScale& scale,
                             std::size_t format, std::size_t role) {
    HeatMapContent content;
    const std::size_t experts = cells.experts(role);
    for (std::size_t expert = 0; expert < experts; ++expert) {
        content.rows.push_back(QString::number(expert));
    }
    const auto layers = static_cast<std::size_t>(cells.layers);
    content.values.assign(experts * layers, std::numeric_limits<float>::quiet_NaN());
    content.kept.assign(experts * layers, 0);
    for (int layer = 0; layer < cells.layers; ++layer) {
        const PrecisionCell& cell = cells.cell(role, layer);
        for (std::size_t expert = 0; expert < cell.weights.size(); ++expert) {
            const std::size_t at = expert * layers + static_cast<std::size_t>(layer), weight = cell.weights[expert];
            content.values[at] = weightError(data->result, scale.measure, format, weight);
            content.kept[at] = format != 0 && data->result.effect(format, weight).kept ? 1 : 0;
        }
    }
    content.columns = cells.layers;
    content.scale = scale;
    content.words = [data, &cells, scale, format, role](int row, int column) {
        const PrecisionCell& cell = cells.cell(role, column);
        const auto expert = static_cast<std::size_t>(row);
        if (expert >= cell.weights.size()) {
            return cellWords(data->result, cells, scale.measure, format, role, column);
        }
        const std::size_t weight = cell.weights[expert];
        return QObject::tr("%1: %2").arg(weightTitle(data->result.weights[weight]),
                                         scale.valueText(weightError(data->result, scale.measure, format, weight)));
    };
    return content;
}

} // namespace vitrine::ui
