// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/precision/precision_tables.h"

#include <QObject>
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "engine/quant/conversion_target.h"
#include "engine/workload/precision/precision_format.h"
#include "ui/models/common/format.h"
#include "ui/models/precision/group_columns.h"
#include "ui/models/precision/number_ticks.h"

namespace vitrine::ui {

namespace {

constexpr double kKiB = 1024, kMiB = 1 << 20;
constexpr std::uint64_t kGiB = 1 << 30;
constexpr double kThousand = 1000; ///< KL is shown in thousandths of a nat

FlatCell labNumber(double value, int decimals, bool muted = false) {
    FlatCell cell(decimalText(value, decimals), value, QString::number(value, 'g', 9));
    cell.muted = muted;
    return cell;
}

FlatCell labMaybe(const std::optional<double>& value, int decimals, double times = 1, bool muted = false) {
    FlatCell cell = value ? labNumber(*value * times, decimals, muted) : FlatCell(unknownText(), -1.0);
    if (!value) {
        cell.tip = QObject::tr("Not measured");
        cell.muted = true;
    }
    return cell;
}

FlatCell labText(const QString& text, bool muted = false) {
    FlatCell cell(text);
    cell.muted = muted;
    return cell;
}

/// The SNR that a table shows: "exact" for a matrix that did not change.
FlatCell choiceRatio(const engine::FormatChoice& choice) {
    if (!choice.packable) {
        FlatCell none = labText(unknownText(), true);
        none.tip = QObject::tr("The format has no groups for this shape");
        return none;
    }
    const std::optional<double> decibels = choice.error.signalToNoise();
    return decibels ? labNumber(*decibels, 2) : FlatCell(QObject::tr("exact"), std::numeric_limits<double>::max());
}

} // namespace

FlatTreePtr formatTable(const PrecisionData& data) {
    auto table = std::make_shared<FlatTree>();
    const bool isSmall = data.result.formats.front().bytes < kGiB; // MiB tell its formats apart
    table->columns = {{QObject::tr("Format")},
                      {QObject::tr("Bits"), true, QObject::tr("bits for a weight")},
                      {isSmall ? QObject::tr("MiB") : QObject::tr("GiB"), true, QObject::tr("bytes")},
                      {QObject::tr("KL x %1").arg(unitText(-3)), true, QObject::tr("KL, thousandths of a nat")},
                      {QObject::tr("Top-1, %"), true},
                      {QObject::tr("tok/s, plan"), true},
                      {QObject::tr("measured"), true, QObject::tr("tok/s, measured")}};
    for (std::size_t i = 0; i < data.result.formats.size(); ++i) {
        const engine::FormatEffect& format = data.result.formats[i];
        const bool reference = i == 0 && format.klMean.has_value();
        FlatNode node;
        node.key = i;
        node.cells = {
            FlatCell(QString::fromStdString(format.title)),
            labNumber(format.bitsPerWeight, 3, true),
            FlatCell(isSmall ? decimalText(static_cast<double>(format.bytes) / kMiB, 1) : gibText(format.bytes),
                     static_cast<double>(format.bytes), QString::number(format.bytes)),
            reference ? labNumber(0, 0) : labMaybe(format.klMean, 2, kThousand),
            labMaybe(format.topOne, 2, 100),
            labMaybe(format.plannedRate, 0, 1, true),
            labMaybe(i < data.measuredRates.size() ? data.measuredRates[i] : std::nullopt, 0)};
        table->nodes.push_back(std::move(node));
    }
    return table;
}

FlatTreePtr worstGroupTable(const engine::TensorDetail& detail) {
    auto table = std::make_shared<FlatTree>();
    const int power = detail.worstGroups.empty() ? 0 : unitPower(detail.worstGroups.front().rms);
    table->columns = {{QObject::tr("Worst groups"), false},
                      {QObject::tr("row, group"), true},
                      {QObject::tr("max |w|"), true},
                      {power == 0 ? QObject::tr("RMS") : QObject::tr("RMS, %1").arg(unitText(power)), true}};
    for (const engine::GroupError& group : detail.worstGroups) {
        FlatNode node;
        node.key = static_cast<quint64>(group.group);
        const std::int64_t inRow = detail.groupsPerRow > 0 ? group.group % detail.groupsPerRow : 0;
        FlatCell place(QObject::tr("%1, %2").arg(group.row).arg(inRow), static_cast<double>(group.group));
        place.muted = true;
        node.cells = {FlatCell(countText(group.group), static_cast<double>(group.group)), place,
                      labNumber(group.largestValue, 4, true), labNumber(group.rms / std::pow(10.0, power), 2)};
        table->nodes.push_back(std::move(node));
    }
    return table;
}

FlatTreePtr choiceTable(const PrecisionTensor& tensor, const QString& title) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Format")},
                      {QObject::tr("Bits"), true},
                      {QObject::tr("KiB"), true, QObject::tr("bytes")},
                      {QObject::tr("Change"), true, QObject::tr("bytes more")},
                      {QObject::tr("SNR, dB"), true}};
    std::vector<engine::FormatChoice> choices = tensor.formats;
    std::ranges::stable_sort(choices, std::greater(), &engine::FormatChoice::bitsPerWeight);
    std::uint64_t now = 0;
    for (const engine::FormatChoice& choice : choices) {
        now = QString::fromStdString(choice.title) == title ? choice.bytes : now;
    }
    for (const engine::FormatChoice& choice : choices) {
        const bool own = QString::fromStdString(choice.title) == title;
        const double change = static_cast<double>(choice.bytes) - static_cast<double>(now);
        FlatNode node;
        node.key = table->nodes.size();
        node.emphasis = own;
        FlatCell difference(own ? QStringLiteral("=") : signedDecimalText(change / kKiB, 0), change,
                            QString::number(change, 'f', 0));
        difference.muted = true;
        node.cells = {FlatCell(QString::fromStdString(choice.title)), labNumber(choice.bitsPerWeight, 3, true),
                      FlatCell(decimalText(static_cast<double>(choice.bytes) / kKiB, 0),
                               static_cast<double>(choice.bytes), QString::number(choice.bytes)),
                      difference, choiceRatio(choice)};
        table->nodes.push_back(std::move(node));
    }
    return table;
}

FlatTreePtr errorPlaceTable(const engine::TensorDetail& detail) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QString()}, {QString(), true}};
    const auto row = [&](const QString& name, const QString& value) {
        FlatNode node;
        node.key = table->nodes.size();
        node.cells = {FlatCell(name), FlatCell(value)};
        table->nodes.push_back(std::move(node));
    };
    row(QObject::tr("worst 1 % of the groups"), shareText(detail.worstPercentShare));
    const engine::RowBand& band = detail.worstRows;
    const double part =
        detail.out > 0 ? static_cast<double>(band.last - band.first + 1) / static_cast<double>(detail.out) : 0;
    row(QObject::tr("rows %1 to %2, %3 of the rows").arg(band.first).arg(band.last).arg(shareText(part)),
        shareText(band.share));
    row(QObject::tr("weights beyond 6 times the RMS"), countText(detail.outlierCount));
    return table;
}

FlatTreePtr mapTable(const engine::PrecisionResult& result, const PrecisionMap& map, std::size_t format) {
    auto table = std::make_shared<FlatTree>();
    table->columns = {{QObject::tr("Role")},
                      {QObject::tr("Layer"), true},
                      {QObject::tr("Matrices"), true},
                      {QObject::tr("SNR, dB"), true},
                      {QObject::tr("MSE"), true},
                      {QObject::tr("Cosine"), true},
                      {QObject::tr("MiB"), true, QObject::tr("bytes")},
                      {QObject::tr("MiB in BF16"), true, QObject::tr("bytes in BF16")},
                      {QObject::tr("Stays BF16")}};
    const std::vector<float> ratios = cellMeans(result, map, ErrorMeasure::Snr, format);
    const std::vector<float> squares = cellMeans(result, map, ErrorMeasure::Mse, format);
    const std::vector<float> cosines = cellMeans(result, map, ErrorMeasure::Cosine, format);
    const std::vector<std::uint8_t> kept = keptCells(result, map, format);
    const auto mebibytes = [](std::uint64_t bytes) {
        return FlatCell(decimalText(static_cast<double>(bytes) / (kKiB * kKiB), 1), static_cast<double>(bytes),
                        QString::number(bytes));
    };
    for (std::size_t i = 0; i < map.cells.size(); ++i) {
        if (map.cells[i].weights.empty()) {
            continue;
        }
        const CellBytes bytes = cellBytes(result, format, map.cells[i]);
        FlatNode node;
        node.key = i;
        node.cells = {FlatCell(QString::fromStdString(map.roles[i / static_cast<std::size_t>(map.layers)])),
                      labNumber(static_cast<double>(i % static_cast<std::size_t>(map.layers)), 0),
                      labNumber(static_cast<double>(map.cells[i].weights.size()), 0, true),
                      std::isinf(ratios[i]) ? FlatCell(QObject::tr("exact"), 1e9) : labNumber(ratios[i], 2),
                      FlatCell(ErrorScale{ErrorMeasure::Mse}.valueText(squares[i]), static_cast<double>(squares[i]),
                               QString::number(squares[i], 'g', 9)),
                      labNumber(cosines[i], 5),
                      mebibytes(kept[i] != 0 ? bytes.bf16 : bytes.now),
                      mebibytes(bytes.bf16),
                      labText(kept[i] != 0 || format == 0 ? QObject::tr("yes") : QObject::tr("no"), true)};
        table->nodes.push_back(std::move(node));
    }
    return table;
}

QString tensorWords(const engine::TensorDetail& detail) {
    const std::optional<double> ratio = detail.error.signalToNoise(), cosine = detail.error.cosine();
    return QObject::tr("[%1, %2]   SNR %3   cosine %4   largest error %5   clipped %6")
        .arg(detail.out)
        .arg(detail.in)
        .arg(ratio ? QObject::tr("%1 dB").arg(decimalText(*ratio, 2)) : QObject::tr("exact"),
             cosine ? decimalText(*cosine, 5) : unknownText(), decimalText(detail.error.largest, 4),
             countText(detail.clipped));
}

QString tensorMarkdown(const PrecisionTensor& tensor, const QString& title) {
    const engine::TensorDetail& detail = tensor.detail;
    const QString expert = detail.expert >= 0 ? QObject::tr(", expert %1").arg(detail.expert) : QString();
    return QObject::tr("%1%2, %3: %4\n\n%5\n%6")
        .arg(QString::fromStdString(detail.name), expert, title, tensorWords(detail),
             asMarkdown(*choiceTable(tensor, title)), asMarkdown(*errorPlaceTable(detail)));
}

QString ruleWords(const std::string& format) {
    std::optional<engine::Quantization> target;
    try {
        target = engine::precisionFormat(format).quantization;
    } catch (const base::BadInput&) {
        return {}; // a format of another version
    }
    const QString rule = target ? QString::fromStdString(engine::roundingRule(*target)) : QString();
    return rule.isEmpty() ? QString() : QObject::tr("Rule: %1").arg(QString(rule).replace('-', QChar(0x2212)));
}

QString keptNote(const engine::PrecisionResult& result) {
    return QObject::tr("Embedding, head, norms and what no format packs stay BF16: %1 in each row.")
        .arg(bytesText(result.keptBytes));
}

} // namespace vitrine::ui
