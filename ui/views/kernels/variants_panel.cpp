// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/kernels/variants_panel.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QPushButton>
#include <QTreeView>
#include <QVBoxLayout>

#include "ui/models/common/format.h"
#include "ui/widgets/base/delegates.h"
#include "ui/widgets/base/style.h"

namespace vitrine::ui {

namespace {

constexpr quint64 kVariantBits = 0xffffffff; ///< of a row's key; above them the specialisation's number

} // namespace

VariantsPanel::VariantsPanel(const ViewServices& context, QWidget* parent) : QWidget(parent), context_(context) {
    auto* column = new QVBoxLayout(this);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    table_ = new QTreeView(this);
    table_->setAccessibleName(tr("Variants in use"));
    setUpTable(table_, true, false);
    model_ = new FlatTreeModel(this);
    table_->header()->setSortIndicator(VariantTime, Qt::DescendingOrder);
    table_->setModel(model_);
    table_->header()->setStretchLastSection(false);
    column->addWidget(table_, 1);
    auto* bar = new Surface(Surface::Fill::Panel, Surface::Top, this);
    bar->setFixedHeight(40);
    auto* row = new QHBoxLayout(bar);
    row->setContentsMargins(12, 0, 12, 0);
    row->setSpacing(8);
    op_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, false, bar);
    candidates_ = new QComboBox(bar);
    candidates_->setAccessibleName(tr("Variant for B"));
    candidates_->setMinimumWidth(160);
    button_ = new QPushButton(tr("A/B on this run"), bar);
    status_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, bar);
    status_->setElide(true);
    setControlHeight(candidates_, 24);
    setControlHeight(button_, 24);
    row->addWidget(op_);
    row->addWidget(candidates_);
    row->addWidget(button_);
    row->addWidget(status_, 1);
    column->addWidget(bar);
    connect(button_, &QPushButton::clicked, this, &VariantsPanel::startComparison);
    connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this, [this] {
        refreshChoice();
        announceChosen();
    });
    if (context_.runs != nullptr) {
        connect(context_.runs, &RunController::started, this, [this](qint64 run) {
            if (comparedA_ != 0 && comparedB_ == 0) {
                comparedB_ = run;
            }
            refreshChoice();
        });
        connect(context_.runs, &RunController::ended, this, [this] {
            ended_ = comparedB_ != 0;
            finishComparison();
            refreshChoice();
        });
        connect(context_.runs, &RunController::refused, this, [this] {
            comparedA_ = comparedB_ = 0;
            refreshChoice();
        });
        connect(context_.document, &SessionDocument::runsChanged, this, &VariantsPanel::finishComparison);
    }
    refresh();
}

void VariantsPanel::setSides(std::optional<VariantSide> a, std::optional<VariantSide> b) {
    a_ = std::move(a);
    b_ = std::move(b);
    refresh();
}

void VariantsPanel::refresh() {
    model_->setTree(a_ ? variantTree(*a_, b_) : std::make_shared<FlatTree>());
    if (const bool wide = b_.has_value(); model_->rowCount() > 0 && (table_->columnWidth(0) < 150 || wide != withB_)) {
        withB_ = wide;
        const int widths[] = {160, 108, 84, wide ? 136 : 166, 70, 70, 56, 78, 122, 58, 80, 158, 80, 84};
        for (int i = 0; i < model_->columnCount(); ++i) {
            table_->setColumnWidth(i, widths[i]);
        }
        // Two runs need the room: what A was compiled to stands in the inspector.
        for (const int column : {VariantShared, VariantSpills, VariantCubin, VariantOrigin, VariantCalls}) {
            table_->setColumnHidden(column, wide);
        }
        if (wide) {
            table_->setItemDelegateForColumn(VariantDelta, new DeltaDelegate(table_));
        }
    }
    if (!table_->currentIndex().isValid() && model_->rowCount() > 0) {
        // Where A and B differ, else the first row with a choice: what A/B is for.
        QModelIndex wanted = model_->index(0, 0);
        int best = 0;
        for (int i = 0; a_ && i < model_->rowCount(); ++i) {
            const FlatNode* node = model_->node(model_->index(i, 0));
            const UsedVariant& variant = a_->list->used[(node->key & kVariantBits) - 1];
            const int worth = node->emphasis ? 2 : a_->list->of(variant.family).size() > 1 ? 1 : 0;
            if (worth > best) {
                best = worth;
                wanted = model_->index(i, 0);
            }
        }
        const QSignalBlocker quiet(this); // nobody chose it
        table_->setCurrentIndex(wanted);
    }
    refreshChoice();
}

const UsedVariant* VariantsPanel::chosen() const {
    const FlatNode* node = model_->node(table_->currentIndex());
    const std::size_t number = node != nullptr ? node->key & kVariantBits : 0;
    return a_ && number > 0 && number <= a_->list->used.size() ? &a_->list->used[number - 1] : nullptr;
}

QString VariantsPanel::whyNot() const {
    const UsedVariant* variant = chosen();
    if (variant == nullptr) {
        return tr("Choose an op to compare its variants.");
    }
    if (offered_.empty()) {
        return tr("%1 is the only variant of %2 for %3.").arg(variant->name(), variant->family, variant->arch);
    }
    if (context_.runs == nullptr) {
        return tr("Nothing can be started here.");
    }
    if (context_.document->readOnly()) {
        return tr("The file is read only: B has no place in it.");
    }
    return context_.runs->running() ? tr("A run is in progress.") : QString();
}

void VariantsPanel::refreshChoice() {
    const UsedVariant* variant = chosen();
    const QString kept = candidates_->currentText();
    offered_.clear();
    candidates_->clear();
    op_->setText(variant != nullptr ? variant->family : QString());
    if (variant != nullptr) {
        for (const Candidate& candidate : a_->list->of(variant->family)) {
            if (!candidate.used) {
                offered_.push_back(candidate);
                candidates_->addItem(candidate.name);
            }
        }
        candidates_->setCurrentIndex(std::max(0, candidates_->findText(kept)));
    }
    candidates_->setVisible(!offered_.empty());
    const QString reason = whyNot();
    button_->setEnabled(reason.isEmpty());
    button_->setVisible(!offered_.empty());
    QString status = reason;
    if (reason.isEmpty()) {
        status = tr("Runs the same experiment once more with this variant and sets both runs side by side.");
    }
    if (comparedA_ != 0) {
        status = tr("B is running with %1.").arg(candidates_->currentText());
    }
    if (a_ && !a_->list->note.isEmpty() && reason.isEmpty()) {
        status = a_->list->note;
    }
    status_->setText(status);
    status_->setToolTip(status);
    emit availabilityChanged();
}

void VariantsPanel::startComparison() {
    const int index = candidates_->currentIndex();
    const sessions::RunInfo* run = context_.document->run(context_.document->runA());
    if (!whyNot().isEmpty() || index < 0 || run == nullptr) {
        return;
    }
    comparedA_ = run->id;
    comparedB_ = 0;
    ended_ = false;
    context_.runs->start(variantExperiment(*run, offered_[static_cast<std::size_t>(index)]), context_.document->path());
    refreshChoice();
}

void VariantsPanel::finishComparison() {
    if (!ended_ || context_.document->run(comparedB_) == nullptr) {
        return; // the list of runs comes a moment later
    }
    const sessions::RunId a = comparedA_, b = comparedB_;
    comparedA_ = comparedB_ = 0;
    ended_ = false;
    context_.document->setRunA(a);
    context_.document->setRunB(b);
    refreshChoice();
}

void VariantsPanel::announceChosen() {
    if (const UsedVariant* variant = chosen(); variant != nullptr && !variant->entries.empty()) {
        emit kernelChosen(textOf(variant->entries.front()));
    }
}

void VariantsPanel::choose(const QString& kernel) {
    const UsedVariant* wanted = a_ ? a_->list->withEntry(kernel.toStdString()) : nullptr;
    if (wanted != nullptr && wanted != chosen()) {
        const auto number = static_cast<quint64>(wanted - a_->list->used.data()) + 1;
        const QSignalBlocker quiet(this);
        table_->setCurrentIndex(model_->indexOfKey(number));
    }
}

QString VariantsPanel::text() const {
    QModelIndexList rows;
    for (int i = 0; i < model_->rowCount(); ++i) {
        rows << model_->index(i, 0);
    }
    return asTabSeparated(*model_, rows);
}

} // namespace vitrine::ui
