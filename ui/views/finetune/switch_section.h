// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// Two sections of the inspector of a training run: what each memory technique buys, and the longest context of each set
// of them. The check boxes are drawn: a run's switches are facts.

#include <QTableView>
#include <optional>

#include "ui/models/common/flat_tree.h"
#include "ui/models/finetune/switch_prices.h"
#include "ui/widgets/base/controls.h"
#include "ui/widgets/plots/item_plot.h"

namespace vitrine::ui {

/// Bars of the longest rows, with a line at the run's own length.
class ContextBars final : public ItemPlot {
    Q_OBJECT

public:
    explicit ContextBars(QWidget* parent);
    void setLimits(std::vector<ContextLimit> limits, std::int64_t context, std::uint64_t host);
    QImage picture(const QSizeF& size, double dpr) const override;
    QSize sizeHint() const override;

protected:
    int itemCount() const override { return static_cast<int>(limits_.size()); }
    int itemAt(QPointF position) const override;
    QString itemText(int item) const override;
    QRectF itemFrame(int item) const override;

private:
    double longest() const;
    std::vector<ContextLimit> limits_;
    std::int64_t context_ = 0;
    std::uint64_t host_ = 0;
};

class SwitchSection final : public QWidget {
    Q_OBJECT

public:
    explicit SwitchSection(QWidget* parent);

    /// Nothing: there are no prices, and `why` says why not. `live`: the steps to go are worth a hint.
    void setPrices(const std::optional<SwitchPrices>& prices, const std::optional<MeasuredPair>& measured,
                   const TrainingRunPtr& run, std::int64_t checkpoint, const QString& why);
    QTableView* view() const { return view_; }
    QString hintText() const { return hint_->text(); }
    QPushButton* hintButton() const { return branch_; }
    ContextBars* bars() const { return bars_; }
    QString asText() const;

signals:
    /// A switch was chosen: the planned peak if it were the other way; nothing: none is chosen.
    void outlineWanted(std::optional<quint64> bytes, const QString& label);
    /// The form with one option changed is wanted; nothing starts by itself.
    void branchWanted(const QString& key, const QString& value);

private:
    void choose(const QModelIndex& index);
    void buildHint();

    DockHeader *header_, *limitHeader_;
    QWidget* head_ = nullptr; ///< titles of the columns
    TextLabel *band_, *limitBand_, *why_, *hint_;
    QTableView* view_;
    FlatTreeModel* model_;
    QWidget* hintBox_;
    QPushButton* branch_;
    ContextBars* bars_;
    std::optional<SwitchPrices> prices_;
    std::optional<SwitchHint> shown_;
    quint64 chosen_ = 0; ///< the key of the chosen row; 0: none
};

} // namespace vitrine::ui
