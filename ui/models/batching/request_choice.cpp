// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#include "ui/models/batching/request_choice.h"

#include "ui/models/common/time_cursor.h"

namespace vitrine::ui {

RequestChoice& RequestChoice::of(TimeCursor* time) {
    auto* choice = time->findChild<RequestChoice*>(QString(), Qt::FindDirectChildrenOnly);
    return choice != nullptr ? *choice : *new RequestChoice(time);
}

void RequestChoice::choose(std::int32_t request) {
    if (request_ != request) {
        request_ = request;
        emit changed();
    }
}

} // namespace vitrine::ui
