// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/rl/rl_step_legend.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ui/models/common/format.h"
#include "ui/widgets/base/legend_strip.h"
#include "ui/widgets/base/paint.h"
#include "ui/widgets/plots/fact_table.h"
#include "ui/widgets/plots/plot_frame.h"

namespace vitrine::ui {

namespace {

constexpr int kLegendNumber = 60, kLegendRow = 17; ///< nine layers beside the plot
constexpr int kLeastColumn = 160, kMostColumn = 240;
constexpr int kNameRoom = 34; ///< of the swatch and the air around a name

/// "0.00" is said of nothing: layers that would read it are left out.
bool isSeen(const RlStepPart& part, const ByteGrid& grid) {
    return part.bytes >= grid.unit / 200;
}

ByteGrid gridOf(const std::vector<RlStepPart>& most) {
    std::uint64_t largest = 0;
    for (const RlStepPart& part : most) {
        largest = std::max(largest, part.bytes);
    }
    return byteGrid(largest);
}

QString heldIn(const ByteGrid& grid, std::uint64_t held) {
    const double shown = static_cast<double>(held) / static_cast<double>(grid.unit);
    return held == 0 ? QStringLiteral("0") : QString::number(shown, 'f', grid.unit > 1 ? 2 : 0);
}

/// From above, as they are stacked.
FlatTreePtr partTable(const QString& head, const std::vector<RlStepPart>& parts, const std::vector<RlStepPart>& most) {
    const ByteGrid grid = gridOf(most);
    auto out = std::make_shared<FlatTree>();
    out->columns = {{head}, {QString::fromLatin1(grid.unitName), true}};
    for (std::size_t i = most.size(); i-- > 0;) {
        if (!isSeen(most[i], grid)) {
            continue;
        }
        FlatNode node;
        node.key = static_cast<quint64>(i) + 1;
        FlatCell name(parts[i].layer.name);
        name.muted = true;
        name.tip = parts[i].layer.name;
        node.cells = {name, FlatCell(heldIn(grid, parts[i].bytes), QVariant(static_cast<qulonglong>(parts[i].bytes)),
                                     QString::number(parts[i].bytes))};
        out->nodes.push_back(std::move(node));
    }
    return out;
}

std::vector<LegendItem> partItems(const std::vector<RlStepPart>& parts, const std::vector<RlStepPart>& most) {
    const ByteGrid grid = gridOf(most);
    std::vector<LegendItem> out;
    for (std::size_t i = most.size(); i-- > 0;) {
        if (isSeen(most[i], grid)) {
            out.push_back({QStringLiteral("%1 %2").arg(parts[i].layer.name, heldIn(grid, parts[i].bytes)),
                           LegendItem::Mark::Swatch,
                           [layer = parts[i].layer](const ThemeTokens& t) { return layerStyle(layer, t); }});
        }
    }
    return out;
}

/// Names of layers behind their swatches, which are not those of categories alone.
class LayerDelegate final : public FactDelegate {
public:
    LayerDelegate(const std::vector<RlStepPart>* parts, QObject* parent) : FactDelegate(parent), parts_(parts) {}
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
        constexpr int kSwatchPlace = 10, kSwatchSize = 12, kNamePlace = 18;
        const ThemeTokens& t = themeTokens();
        painter->fillRect(option.rect, t.panel);
        QStyleOptionViewItem moved = option;
        moved.rect.adjust(kNamePlace, 0, 0, 0);
        FactDelegate::paint(painter, moved, index);
        const std::size_t layer = static_cast<std::size_t>(index.data(KeyRole).toULongLong()) - 1;
        if (layer < parts_->size()) {
            drawSwatch(
                *painter,
                QRectF(option.rect.left() + kSwatchPlace, option.rect.center().y() - 5, kSwatchSize, kSwatchSize),
                layerStyle((*parts_)[layer].layer, t));
        }
    }

private:
    const std::vector<RlStepPart>* parts_; ///< of the pane, which outlives it
};

} // namespace

RlStepLegend::RlStepLegend(QWidget* parent)
    : QObject(parent), column_(new FactTable(tr("Memory by category"), parent)), strip_(new LegendStrip(parent)) {
    column_->setNumberWidth(kLegendNumber);
    column_->setRowHeight(kLegendRow);
    column_->view()->setItemDelegateForColumn(0, new LayerDelegate(&most_, column_->view()));
    strip_->setWraps();
    setLow(false);
}

void RlStepLegend::setLow(bool low) {
    column_->setVisible(!low);
    strip_->setVisible(low);
}

void RlStepLegend::setParts(const QString& head, const std::vector<RlStepPart>& parts,
                            const std::vector<RlStepPart>& most) {
    most_ = most;
    const FlatTreePtr table = partTable(head, parts, most);
    column_->setTable(table);
    strip_->setItems(partItems(parts, most),
                     QStringLiteral("%1, %2").arg(head, QString::fromLatin1(gridOf(most).unitName)));
    fitColumn();
}

/// No name is cut where there is room for a plot beside it.
void RlStepLegend::fitColumn() {
    const QFont font = Theme::instance().font(TypeRole::Table);
    double widest = 0;
    for (const FlatNode& node : column_->model()->tree().nodes) {
        widest = std::max(widest, textWidth(node.cells.front().text, font));
    }
    column_->setFixedWidth(
        std::clamp(static_cast<int>(std::ceil(widest)) + kNameRoom + kLegendNumber, kLeastColumn, kMostColumn));
}

} // namespace vitrine::ui
