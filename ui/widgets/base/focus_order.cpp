// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/widgets/base/focus_order.h"

#include <map>
#include <vector>

namespace vitrine::ui {

void orderFocus(const QList<QWidget*>& parts) {
    std::map<const QWidget*, std::vector<QWidget*>> members;
    QWidget* window = nullptr;
    for (QWidget* part : parts) {
        if (part != nullptr) {
            window = window == nullptr ? part->window() : window;
            members[part];
        }
    }
    if (window == nullptr) {
        return;
    }
    for (QWidget* at = window->nextInFocusChain(); at != window; at = at->nextInFocusChain()) {
        if ((at->focusPolicy() & Qt::TabFocus) == 0 || at->window() != window) {
            continue;
        }
        for (const QWidget* above = at; above != nullptr; above = above->parentWidget()) {
            if (const auto found = members.find(above); found != members.end()) {
                found->second.push_back(at); // of the innermost part
                break;
            }
        }
    }
    QWidget* last = nullptr;
    for (QWidget* part : parts) {
        for (QWidget* one : part != nullptr ? members[part] : std::vector<QWidget*>()) {
            if (last != nullptr) {
                QWidget::setTabOrder(last, one);
            }
            last = one;
        }
        members.erase(part); // a part that is named twice stands at its first place
    }
}

} // namespace vitrine::ui
