// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/planner/plan_tabs.h"

#include <QResizeEvent>
#include <QStringList>
#include <QWidget>

#include "ui/widgets/base/controls.h"

namespace vitrine::ui {

namespace {

constexpr int kBelowWidth = 600; ///< no panel beside the page is as wide

} // namespace

PlanTabs::PlanTabs(std::vector<std::pair<QString, QWidget*>> parts, QWidget* panel, DockHeader* header)
    : QObject(header), parts_(std::move(parts)), title_(parts_.front().first), header_(header) {
    QStringList names;
    for (const auto& [name, part] : parts_) {
        names << name;
    }
    segments_ = new SegmentedControl(names, header);
    segments_->setAccessibleName(tr("Part of the plan"));
    header->addControl(segments_);
    connect(segments_, &SegmentedControl::currentChanged, this, &PlanTabs::update);
    panel->installEventFilter(this);
    update();
}

bool PlanTabs::eventFilter(QObject* watched, QEvent* event) {
    if (event->type() == QEvent::Resize) {
        const bool below = static_cast<QResizeEvent*>(event)->size().width() >= kBelowWidth;
        if (below != std::exchange(below_, below)) {
            update();
        }
    }
    return QObject::eventFilter(watched, event);
}

void PlanTabs::setTitle(const QString& title) {
    title_ = title;
    update();
}

void PlanTabs::update() {
    header_->setTitle(below_ ? QString() : title_);
    segments_->setVisible(below_);
    for (std::size_t i = 0; i < parts_.size(); ++i) {
        parts_[i].second->setVisible(!below_ || static_cast<int>(i) == segments_->current());
    }
}

} // namespace vitrine::ui
