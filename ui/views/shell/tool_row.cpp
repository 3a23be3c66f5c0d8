// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/tool_row.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QPushButton>
#include <algorithm>

#include "ui/views/shell/device_strip.h"
#include "ui/views/shell/rail.h"
#include "ui/widgets/base/icons.h"
#include "ui/widgets/base/style.h"
#include "ui/widgets/base/theme.h"

namespace vitrine::ui {

namespace {

constexpr int kNoteRoom = 320; ///< that parts of the device's strip make for the note

} // namespace

ToolRow::ToolRow(const ViewServices& context, SearchField::Finder find, QWidget* parent)
    : QWidget(parent), pickerA_(new RunPicker(QLatin1Char('A'), context.document, this)),
      pickerB_(new RunPicker(QLatin1Char('B'), context.document, this)) {
    auto* row = new QHBoxLayout(this);
    row->setContentsMargins(12, 0, 12, 1);
    row->setSpacing(8);
    row->addWidget(pickerA_);
    row->addWidget(pickerB_);
    addButtons(*context.actions);
    auto* line = new Surface(Surface::Fill::Window, Surface::Left, this);
    line->setFixedSize(1, 20);
    row->addSpacing(4);
    row->addWidget(line);
    row->addSpacing(4);
    row->addWidget(new Crumbs(context.time, this));
    addWhyOutOfMemory(*context.actions);
    note_ = new TextLabel({}, TypeRole::Table, TextColor::Text2, false, this);
    note_->setElide(true);
    note_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred); // it has what the others leave
    note_->hide();
    row->addWidget(note_, 50);
    row->addStretch(1);
    search_ = new SearchField(std::move(find), this);
    row->addWidget(search_);
    device_ = new DeviceStrip(context.document, context.devices, this);
    row->addWidget(device_);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
}

void ToolRow::addButtons(ActionList& actions) {
    again_ = new QPushButton(icon(QStringLiteral("run-again")), tr("Run again"), this);
    again_->setObjectName(QStringLiteral("runAgain"));
    stop_ = new QPushButton(icon(QStringLiteral("stop")), tr("Stop"), this);
    connect(again_, &QPushButton::clicked, actions.action(QStringLiteral("run.again")), &QAction::trigger);
    connect(stop_, &QPushButton::clicked, actions.action(QStringLiteral("run.stop")), &QAction::trigger);
    layout()->addWidget(again_);
    layout()->addWidget(stop_);
}

void ToolRow::addWhyOutOfMemory(ActionList& actions) {
    whyOutOfMemory_ =
        new QPushButton(icon(QStringLiteral("warning"), themeTokens().bad), tr("Why out of memory"), this);
    setAlarming(whyOutOfMemory_);
    setExtraWidth(whyOutOfMemory_, 22);
    auto* key = new KeyHint(QStringLiteral("O"), whyOutOfMemory_);
    key->setAlarming(true);
    auto* keyRow = new QHBoxLayout(whyOutOfMemory_);
    keyRow->setContentsMargins(0, 0, 7, 0);
    keyRow->addStretch(1);
    keyRow->addWidget(key);
    connect(whyOutOfMemory_, &QPushButton::clicked, actions.action(QStringLiteral("go.oom")), &QAction::trigger);
    connect(&Theme::instance(), &Theme::changed, this,
            [this] { whyOutOfMemory_->setIcon(icon(QStringLiteral("warning"), themeTokens().bad)); });
    whyOutOfMemory_->hide();
    layout()->addWidget(whyOutOfMemory_);
}

void ToolRow::setNote(const QString& note) {
    note_->setText(note);
    note_->setToolTip(note);
    note_->setVisible(!note.isEmpty());
}

QWidget* ToolRow::firstStop() const {
    return pickerA_;
}

void ToolRow::setNarrow(bool narrow, bool isSmall) {
    device_->setNarrow(narrow);
    const std::pair<QPushButton*, QString> buttons[] = {{again_, tr("Run again")}, {stop_, tr("Stop")}};
    for (const auto& [button, text] : buttons) {
        button->setText(narrow ? QString() : text);
        button->setToolTip(text);
        button->setAccessibleName(text);
    }
    search_->setSmall(isSmall);
}

void ToolRow::setAvailable(bool again, bool stop, bool whyOutOfMemory) {
    if ((again_->hasFocus() && !again) || (stop_->hasFocus() && !stop) ||
        (whyOutOfMemory_->hasFocus() && !whyOutOfMemory)) {
        emit focusFreed();
    }
    whyOutOfMemory_->setVisible(whyOutOfMemory);
    again_->setEnabled(again);
    stop_->setEnabled(stop);
}

bool ToolRow::event(QEvent* event) {
    if (device_ != nullptr && (event->type() == QEvent::Resize || event->type() == QEvent::LayoutRequest)) {
        fitDevice();
    }
    return QWidget::event(event);
}

/// Parts of the device's strip go before the titles of runs or a note are cut.
void ToolRow::fitDevice() {
    const QLayout* row = layout();
    int others = row->contentsMargins().left() + row->contentsMargins().right();
    for (int i = 0; i < row->count(); ++i) {
        QLayoutItem* item = row->itemAt(i);
        if (item->spacerItem() != nullptr) {
            others += item->sizeHint().width();
        } else if (item->widget() == note_ && !item->isEmpty()) {
            others += std::min(note_->sizeHint().width(), kNoteRoom) + row->spacing();
        } else if (item->widget() != device_ && !item->isEmpty()) {
            others += item->sizeHint().width() + row->spacing();
        }
    }
    device_->fit(width() - others);
}

} // namespace vitrine::ui
