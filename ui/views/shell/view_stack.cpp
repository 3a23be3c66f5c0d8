// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/views/shell/view_stack.h"

#include <QActionGroup>
#include <QCoreApplication>

#include "base/json_values.h"
#include "engine/workload/experiment/experiment.h"
#include "engine/workload/experiment/workload_table.h"
#include "ui/models/common/format.h"
#include "ui/views/shell/rail.h"
#include "ui/views/shell/view_list.h"

namespace vitrine::ui {

ViewStack::ViewStack(const ViewServices& context, Rail* rail, QWidget* parent)
    : QStackedWidget(parent), actions_(context.actions) {
    setMinimumSize(320, 240);
    auto* group = new QActionGroup(this);
    for (const ViewEntry& entry : viewEntries()) {
        const QString id = QString::fromLatin1(entry.id);
        QAction* action = actions_->action(QStringLiteral("go.") + id);
        action->setCheckable(true);
        group->addAction(action);
        if (entry.pageOf != nullptr) {
            railOf_[id] = QString::fromLatin1(entry.pageOf);
        } else {
            rail->addView(action, QCoreApplication::translate("ViewList", entry.title),
                          QString::fromLatin1(entry.icon));
        }
        View* made = entry.make(context, this);
        views_.push_back(made);
        byId_[id] = made;
        addWidget(made);
        connect(made, &View::openView, this, &ViewStack::open);
        connect(made, &View::experimentWanted, this, &ViewStack::openExperiment);
        connect(made, &View::queueWanted, this, [this](const QString& experimentJson) {
            open(QStringLiteral("queue"));
            view(QStringLiteral("queue"))->takeExperiment(experimentJson);
        });
    }
}

ViewStack::~ViewStack() {
    for (View* view : views_) {
        view->disconnect(this); // they go after this part of the stack
    }
}

View* ViewStack::view(const QString& id) const {
    const auto found = byId_.find(id);
    return found == byId_.end() ? nullptr : found->second;
}

View* ViewStack::shown() const {
    return qobject_cast<View*>(currentWidget());
}

QAction* ViewStack::buttonOf(const QString& id) const {
    const auto page = railOf_.find(id);
    return actions_->action(QStringLiteral("go.") + (page == railOf_.end() ? id : page->second));
}

void ViewStack::open(const QString& place) {
    const QString id = place.section(QLatin1Char('/'), 0, 0), page = place.section(QLatin1Char('/'), 1);
    View* next = view(id);
    if (next == nullptr) {
        return;
    }
    if (!page.isEmpty()) {
        next->showPage(page);
    }
    if (next == shown() && !visited_.empty()) {
        buttonOf(id)->setChecked(true); // its button was pressed again
        return;
    }
    if (!visited_.empty()) {
        leave();
        visited_.resize(visitedAt_ + 1);
    }
    visited_.push_back(next);
    visitedAt_ = visited_.size() - 1;
    enter();
}

void ViewStack::back() {
    if (visitedAt_ > 0) {
        leave();
        --visitedAt_;
        enter();
    }
}

void ViewStack::forward() {
    if (visitedAt_ + 1 < visited_.size()) {
        leave();
        ++visitedAt_;
        enter();
    }
}

void ViewStack::leave() {
    emit leaving(shown());
    shown()->deactivated();
}

void ViewStack::enter() {
    View* next = visited_[visitedAt_];
    buttonOf(next->id())->setChecked(true);
    setCurrentWidget(next);
    emit entering(next);
    next->activated();
    emit entered();
}

void ViewStack::openExperiment(const QString& experimentJson) {
    const auto experiment = engine::Experiment::read(experimentJson.toStdString());
    // The Run view says of a workload without a form how it is started.
    const QString target = experiment && !experiment->workload().formView.empty()
                               ? textOf(experiment->workload().formView)
                               : QStringLiteral("run");
    open(target);
    view(target)->takeExperiment(experimentJson);
}

} // namespace vitrine::ui
