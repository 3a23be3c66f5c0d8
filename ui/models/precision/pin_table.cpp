// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/pin_table.h"

#include <QObject>
#include <functional>

#include "ui/models/common/format.h"
#include "ui/models/precision/number_ticks.h"

namespace vitrine::ui {

FlatTreePtr pinTable(const LabPin& shown, const LabPin& pinned) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QString()}, {QObject::tr("Shown"), true}, {QObject::tr("Pinned"), true}};
    const auto row = [&](const QString& name, const std::function<QString(const LabPin&)>& value) {
        FlatNode node;
        node.key = table->nodes.size();
        node.cells = {FlatCell(name), FlatCell(value(shown)), FlatCell(value(pinned))};
        table->nodes.push_back(std::move(node));
    };
    const auto ofTensor = [&](const QString& name, const std::function<QString(const engine::TensorDetail&)>& value) {
        row(name, [&](const LabPin& side) { return side.tensor ? value(side.tensor->detail) : unknownText(); });
    };
    const auto ofGroup = [&](const QString& name, const std::function<QString(const engine::GroupDetail&)>& value) {
        row(name, [&](const LabPin& side) { return side.group ? value(*side.group) : unknownText(); });
    };
    row(QObject::tr("Format"), [](const LabPin& side) { return side.format; });
    ofTensor(QObject::tr("Size"), [](const auto& detail) { return bytesText(detail.bytes); });
    ofTensor(QObject::tr("SNR, dB"), [](const auto& detail) {
        const std::optional<double> ratio = detail.error.signalToNoise();
        return ratio ? decimalText(*ratio, 2) : QObject::tr("exact");
    });
    ofTensor(QObject::tr("Cosine"), [](const auto& detail) {
        const std::optional<double> cosine = detail.error.cosine();
        return cosine ? decimalText(*cosine, 5) : unknownText();
    });
    ofTensor(QObject::tr("MSE"), [](const auto& detail) { return scientificText(detail.error.meanSquare()); });
    ofTensor(QObject::tr("Clipped"), [](const auto& detail) { return countText(detail.clipped); });
    ofTensor(QObject::tr("Beyond 6 times the RMS"), [](const auto& detail) { return countText(detail.outlierCount); });
    ofTensor(QObject::tr("Error in the worst 1 %"),
             [](const auto& detail) { return shareText(detail.worstPercentShare); });
    ofGroup(QObject::tr("Group"), [](const auto& group) { return countText(group.error.group); });
    ofGroup(QObject::tr("RMS error of the group"), [](const auto& group) { return scientificText(group.error.rms); });
    ofGroup(QObject::tr("Largest weight of it"),
            [](const auto& group) { return decimalText(group.error.largestValue, 4); });
    ofGroup(QObject::tr("Step of it"), [](const auto& group) { return scientificText(group.step); });
    return table;
}

} // namespace vitrine::ui
