// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
// The widgets of the queue's inspector.
#include <QCheckBox>
#include <QComboBox>
#include <QHBoxLayout>
#include <QLineEdit>
#include <QPushButton>
#include <QVBoxLayout>

#include "engine/workload/experiment/experiment.h"
#include "ui/views/queue/queue_panel.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/forms/chip_row.h"
#include "ui/widgets/plots/fact_rows.h"

namespace vitrine::ui {

namespace {

constexpr int kSide = 12;

QVBoxLayout* tightColumn(QWidget* parent, int top, int bottom) {
    auto* column = new QVBoxLayout(parent);
    column->setContentsMargins(kSide, top, kSide, bottom);
    column->setSpacing(6);
    return column;
}

} // namespace

QueuePanel::QueuePanel()
    : header_(new DockHeader(tr("Sweep"))), copy_(new QPushButton(tr("Copy to a new sweep"), header_)) {
    setFrameShape(QFrame::NoFrame);
    setWidgetResizable(true);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    copy_->setFlat(true);
    setControlHeight(copy_, 22);
    header_->addControl(copy_);
    connect(copy_, &QPushButton::clicked, this, &QueuePanel::copyWanted);
    auto* content = new Surface(Surface::Fill::Panel, Surface::None, this);
    auto* column = new QVBoxLayout(content);
    column->setContentsMargins(0, 0, 0, 0);
    column->setSpacing(0);
    buildSweep(content);
    fixedHead_ = new DockHeader(tr("What is fixed"), content);
    fixed_ = new FactRows(tr("What is fixed"), content);
    column->addWidget(fixedHead_);
    column->addWidget(fixed_);
    buildRule(content);
    buildAgainst(content);
    column->addStretch(1);
    setWidget(content);
}

void QueuePanel::buildSweep(QWidget* content) {
    auto* column = static_cast<QVBoxLayout*>(content->layout());
    sweepBox_ = new QWidget(content);
    auto* rows = new QVBoxLayout(sweepBox_);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setSpacing(0);
    auto* top = new QWidget(sweepBox_);
    auto* words = tightColumn(top, 8, 8);
    words->setSpacing(0);
    auto* line = new QHBoxLayout;
    number_ = new TextLabel({}, TypeRole::Number, TextColor::Text1, false, top);
    shape_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, top);
    line->addWidget(number_, 0, Qt::AlignBottom);
    line->addSpacing(6);
    line->addWidget(shape_, 1, Qt::AlignBottom);
    words->addLayout(line);
    times_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, top);
    times_->setWordWrap(true);
    words->addWidget(times_);
    rows->addWidget(top);
    variesHead_ = new DockHeader(tr("What varies"), sweepBox_);
    rows->addWidget(variesHead_);
    auto* varies = new QWidget(sweepBox_);
    auto* list = tightColumn(varies, 8, 8);
    chips_ = new QVBoxLayout;
    chips_->setSpacing(9);
    list->addLayout(chips_);
    auto* choice = new QHBoxLayout;
    choice->addWidget(new TextLabel(tr("Order"), TypeRole::Table, TextColor::Text2, false, varies));
    order_ = new QComboBox(varies);
    order_->addItems({tr("as given"), tr("from the middle out")});
    order_->setAccessibleName(tr("Order of the runs"));
    another_ = new QComboBox(varies);
    another_->setAccessibleName(tr("Vary another option"));
    for (QComboBox* box : {order_, another_}) {
        setControlHeight(box, 24);
    }
    choice->addWidget(order_);
    choice->addStretch(1);
    choice->addWidget(another_);
    list->addLayout(choice);
    auto* starts = new QHBoxLayout;
    start_ = new QPushButton(tr("Add the sweep"), varies);
    setPrimary(start_);
    cancel_ = new QPushButton(tr("Cancel"), varies);
    starts->addWidget(start_);
    starts->addWidget(cancel_);
    starts->addStretch(1);
    list->addLayout(starts);
    rows->addWidget(varies);
    column->addWidget(sweepBox_);
    connect(order_, &QComboBox::activated, this, [this] { updateDraft(); });
    connect(another_, &QComboBox::activated, this, [this](int index) {
        const std::string key = another_->itemData(index).toString().toStdString();
        if (draft_ && !key.empty()) {
            const auto base = engine::Experiment::read(draft_->base);
            const std::string now = base ? base->valueText(key) : std::string();
            draft_->options.push_back({key, now.empty() ? std::vector<std::string>() : std::vector{now}});
            showPlan(*draft_, true);
            updateDraft();
            rows_.at(key)->field()->setFocus();
        }
    });
    connect(start_, &QPushButton::clicked, this, [this] {
        if (draft_) {
            emit sweepWanted(*draft_);
        }
    });
    connect(cancel_, &QPushButton::clicked, this, [this] {
        endDraft();
        emit draftEnded();
    });
}

void QueuePanel::buildRule(QWidget* content) {
    ruleBox_ = new QWidget(content);
    auto* rows = new QVBoxLayout(ruleBox_);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setSpacing(0);
    ruleHead_ = new DockHeader(tr("Stop rule"), ruleBox_);
    rows->addWidget(ruleHead_);
    auto* body = new QWidget(ruleBox_);
    auto* column = tightColumn(body, 8, 8);
    rule_ = new QCheckBox(body);
    column->addWidget(rule_);
    ruleSide_ = new TextLabel({}, TypeRole::Table, TextColor::Text1, false, body);
    const auto field = [&](QLineEdit*& edit, const QString& value, const QString& before, TextLabel* after,
                           const QString& name) {
        auto* row = new QHBoxLayout;
        row->setContentsMargins(22, 0, 0, 0);
        if (!before.isEmpty()) {
            row->addWidget(new TextLabel(before, TypeRole::Table, TextColor::Text1, false, body));
        }
        edit = new QLineEdit(value, body);
        edit->setFixedWidth(64);
        edit->setAccessibleName(name);
        setControlHeight(edit, 24);
        row->addWidget(edit);
        if (after != nullptr) {
            row->addWidget(after);
        }
        row->addStretch(1);
        column->addLayout(row);
        connect(edit, &QLineEdit::editingFinished, this, &QueuePanel::takeRule);
    };
    field(above_, QStringLiteral("0.100"), {}, ruleSide_, tr("How far from the best"));
    field(from_, QStringLiteral("0"), tr("not before step"), nullptr, tr("First step of the rule"));
    connect(rule_, &QCheckBox::clicked, this, &QueuePanel::takeRule);
    rows->addWidget(body);
    content->layout()->addWidget(ruleBox_);
}

void QueuePanel::buildAgainst(QWidget* content) {
    againstBox_ = new QWidget(content);
    auto* rows = new QVBoxLayout(againstBox_);
    rows->setContentsMargins(0, 0, 0, 0);
    rows->setSpacing(0);
    againstHead_ = new DockHeader({}, againstBox_);
    against_ = new FactRows(tr("Against the rule"), againstBox_);
    goesOn_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, againstBox_);
    goesOn_->setWordWrap(true);
    goesOn_->setContentsMargins(kSide, 2, kSide, 10);
    rows->addWidget(againstHead_);
    rows->addWidget(against_);
    rows->addWidget(goesOn_);
    buttons_ = new QWidget(content);
    auto* row = new QHBoxLayout(buttons_);
    row->setContentsMargins(kSide, 8, kSide, 8);
    row->setSpacing(8);
    live_ = new QPushButton(tr("Open in Live"), buttons_);
    end_ = new QPushButton(buttons_);
    endSweep_ = new QPushButton(tr("End the sweep"), buttons_);
    for (QPushButton* button : {live_, end_, endSweep_}) {
        setControlHeight(button, 22);
        row->addWidget(button);
    }
    row->addStretch(1);
    content->layout()->addWidget(againstBox_);
    content->layout()->addWidget(buttons_);
    connect(live_, &QPushButton::clicked, this, [this] { emit liveWanted(running_); });
    connect(end_, &QPushButton::clicked, this, [this] { emit endWanted(running_); });
    connect(endSweep_, &QPushButton::clicked, this, &QueuePanel::endSweepWanted);
}

} // namespace vitrine::ui
