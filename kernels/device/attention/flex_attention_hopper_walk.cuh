// SPDX-FileCopyrightText: The Vitrine authors
// SPDX-License-Identifier: GPL-3.0-only
#pragma once

// The tiles of keys that a piece of work of the Hopper forms visits when its rows see intervals: of dense tensors and
// of pages alike (Work, RowPlace and Params are theirs).

#include "device/attention/flex_attention_hopper_stages.cuh"
#ifdef VT_PAGES
#include "device/attention/flex_attention_pages.cuh"
#else
#include "device/attention/flex_attention_dense.cuh"
#endif

namespace vt {

namespace flex {

#if VT_MASK != 1
/// What the piece's rows see together, last keys first; a warp works it out, four rows a lane.
__device__ __forceinline__ IntervalWalk<kKeys, true> walkIntervals(const Params& p, const Work& work) {
    const int firstKey = RowPlace(work, 0).firstKey(p);
    const int lastKey = RowPlace(work, 0).lastKey(p);
    int low = lastKey + 1;
    int high = firstKey - 1;
    int fullLow = firstKey;
    int fullHigh = lastKey;
#if VT_MASK >= 2
    for (int i = 0; i < kRows / 32; ++i) {
        const RowPlace at(work, i * 32 + static_cast<int>(threadIdx.x) % 32);
        if (at.inside(p, 0)) {
            int first = 0;
            int last = 0;
            intervalRows(at.batch(), at.head(0), at.query(0), p.maskCaptures, first, last);
            first = max(first, firstKey);
            last = min(last, lastKey);
            if (first <= last) {
                low = min(low, first);
                high = max(high, last);
            }
            fullLow = max(fullLow, first);
            fullHigh = min(fullHigh, last);
        }
    }
    low = __reduce_min_sync(kAllLanes, low);
    high = __reduce_max_sync(kAllLanes, high);
    fullLow = __reduce_max_sync(kAllLanes, fullLow);
    fullHigh = __reduce_min_sync(kAllLanes, fullHigh);
#else
    low = firstKey;
    high = lastKey;
#endif
    return {low, high, fullLow, fullHigh};
}
#endif

} // namespace flex

} // namespace vt
