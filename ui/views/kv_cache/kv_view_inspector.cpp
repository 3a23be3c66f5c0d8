// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The inspector of the KV cache view: bytes at the cursor, layout, what a change buys, who holds pages.
#include <QHBoxLayout>
#include <QPushButton>
#include <QScrollArea>
#include <QTableView>
#include <QVBoxLayout>
#include <optional>
#include <vector>

#include "engine/workload/experiment/experiment.h"
#include "ui/models/batching/request_choice.h"
#include "ui/models/common/format.h"
#include "ui/models/kv_cache/kv_tables.h"
#include "ui/views/kv_cache/kv_pool_panel.h"
#include "ui/views/kv_cache/kv_view.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/plots/fact_table.h"

namespace vitrine::ui {

namespace {

constexpr int kTryColumn = 4;

} // namespace

void KvView::buildInspector() {
    panel_ = new QScrollArea;
    panel_->setFrameShape(QFrame::NoFrame);
    panel_->setWidgetResizable(true);
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, panel_);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    values_ = new FactTable(tr("KV cache at a number of tokens"), content);
    layout_ = new FactTable(tr("How the KV cache is laid out"), content);
    changes_ = new FactTable(tr("What a change buys"), content);
    owners_ = new FactTable(tr("Who holds pages"), content);
    chosen_ = new FactTable(tr("The chosen request"), content);
    owners_->hide();
    chosen_->hide();
    values_->setNumberWidth(130);
    layout_->setNumberWidth(190);
    changes_->setNumberWidths({66, 72, 62, 64});
    hint_ = new TextLabel({}, TypeRole::Table, TextColor::Text3, false, content);
    hint_->setWordWrap(true);
    hint_->setContentsMargins(12, 10, 12, 10);
    column->addWidget(chosen_);
    column->addWidget(values_);
    column->addWidget(layout_);
    column->addWidget(changes_);
    column->addWidget(owners_);
    column->addWidget(hint_);
    column->addStretch(1);
    panel_->setWidget(content);
    panelHeader_ = new DockHeader(tr("KV cache"));
}

void KvView::updateChanges() {
    const FlatTreePtr table = kvChangeTable(facts_, room_, shownTokens());
    changes_->setTable(table);
    changes_->setVisible(!table->nodes.empty());
    const std::vector<KvChange> changes = kvChanges(facts_);
    for (std::size_t row = 0; row < changes.size(); ++row) {
        const QModelIndex cell = changes_->model()->index(static_cast<int>(row), kTryColumn);
        if (changes[row].key == nullptr || changes_->view()->indexWidget(cell) != nullptr) {
            continue; // rows of one shape keep their buttons while the cursor moves
        }
        auto* place = new QWidget; // keeps the button off the number before it and the edge
        auto* line = new QHBoxLayout(place);
        line->setContentsMargins(8, 0, 12, 0);
        auto* button = new QPushButton(tr("Try"), place);
        line->addWidget(button);
        setControlHeight(button, 20);
        button->setToolTip(tr("Open the form with this one option changed"));
        button->setAccessibleName(tr("Try: %1").arg(changes[row].name));
        connect(button, &QPushButton::clicked, this, [this, row] {
            const std::vector<KvChange> now = kvChanges(facts_);
            const sessions::RunInfo* info = runInfo(run_);
            auto experiment = info != nullptr ? engine::Experiment::read(info->specJson) : std::nullopt;
            if (experiment && row < now.size() && now[row].key != nullptr) {
                experiment->set(now[row].key, now[row].value);
                emit experimentWanted(textOf(experiment->jsonText()));
            }
        });
        changes_->view()->setIndexWidget(cell, place);
    }
}

QPushButton* KvView::tryButton(int row) const {
    const QWidget* place = changes_->view()->indexWidget(changes_->model()->index(row, kTryColumn));
    return place == nullptr ? nullptr : place->findChild<QPushButton*>();
}

void KvView::updateInspector() {
    const FlatTreePtr request =
        pool_ ? kvPoolRequestTable(*pool_, RequestChoice::of(context().time).request(), poolView_->moment()) : nullptr;
    chosen_->setVisible(request != nullptr);
    if (request) {
        chosen_->setTable(request);
    }
    if (pool_ && (overTime() || segments_->current() == 1)) {
        const base::TimeNs at = poolView_->moment();
        const QString when = context().time->cursor() ? tr("At %1")
                             : poolView_->live()      ? tr("At %1, now")
                                                      : tr("At %1, fullest");
        panelHeader_->setTitle(when.arg(instantText(at)));
        values_->setTable(kvPoolValues(*pool_, at));
        values_->setVisible(true);
        owners_->setTable(kvPoolOwners(*pool_, at));
        owners_->setVisible(!owners_->model()->tree().nodes.empty());
        layout_->setTable(kvLayoutTable(facts_));
        layout_->setVisible(facts_.geometry.has_value());
        changes_->hide();
        hint_->setText(pool_->shared().largest() > 0 ? tr("Kept counts the tokens that running requests need, "
                                                          "each for itself; held counts whole pages, "
                                                          "shared ones once.")
                                                     : tr("Kept counts the tokens that running requests need; "
                                                          "held counts whole pages, padding and all. "
                                                          "What lies between is page rounding."));
        return;
    }
    owners_->setVisible(false);
    const std::int64_t tokens = shownTokens();
    updateChanges();
    panelHeader_->setTitle(facts_.empty() ? tr("KV cache") : tr("At %1 tokens").arg(countText(tokens)));
    values_->setTable(kvValuesTable(facts_, tokens));
    values_->setVisible(!facts_.empty());
    const FlatTreePtr layout = kvLayoutTable(facts_);
    layout_->setTable(layout);
    layout_->setVisible(!layout->nodes.empty());
    hint_->setText(facts_.empty() ? QString()
                   : !facts_.geometry
                       ? tr("This run does not say how its cache is laid out, so the tokens kept are not known.")
                       : tr("Kept counts the tokens in the cache; whole pages hold them. "
                            "Page rounding is the room in pages and rings that no token uses yet."));
}

} // namespace vitrine::ui
