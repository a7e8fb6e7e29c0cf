// convolve: a real plane convolved with an even kernel, which is given by its spectrum.
//
// The plane of rows x columns is part of a periodic one of 2m x 2w nodes, m >= rows and w >= columns, so
// that nothing reaches around. Why it is fast. A sequence of w numbers and w zeros has as even
// frequencies the transform of the numbers, and as odd ones that of the numbers turned by half a step, so
// zeros are never touched. Vectors hold 8 sequences. Two real rows are one complex sequence. 8 columns
// are transformed, multiplied by the spectrum and transformed back while they are in the near cache.
//
// Each row and each block of columns is one task with a place of its own: threads do not change a bit.
#include "embedding/embedding.h"
#include "embedding/repulsion/fourier.h"

namespace lowland {
namespace LOWLAND_ISA {
namespace {

typedef Lanes<float>::loose Loose;
constexpr Index kGroup = 2 * kLanes;  // rows that are transformed together

// Where the transforms of rows have frequency f, and where its mirror image -f.
struct Twin {
    std::int32_t place, mirror;
};

// Frequencies 0 .. w of the periodic rows. Places of even ones count from 0, of odd ones from w; in both
// parts, frequencies of the part are numbered 0 .. w - 1.
void find_twins(const Fourier& rows, std::int32_t* work, Twin* twins) {
    const Index w = rows.n;
    std::int32_t* place_of = work + w;
    rows.order(work);
    for (Index place = 0; place < w; ++place) place_of[work[place]] = static_cast<std::int32_t>(place);
    for (Index f = 0; f <= w; ++f) {
        const Index at = f / 2 % w;
        if (f % 2 == 0) {
            twins[f] = {place_of[at], place_of[(w - at) % w]};
        } else {
            const std::int32_t shift = static_cast<std::int32_t>(w);
            twins[f] = {shift + place_of[at], shift + place_of[w - 1 - at]};
        }
    }
}

// 8 numbers at columns c .. of each of the rows first .. first + 7; 0 outside of the plane.
inline void load_square(const Plane& plane, Index first, Index c, Wide* v) {
    for (Index i = 0; i < kLanes; ++i) {
        v[i] = Wide{};
        if (first + i >= plane.rows) continue;
        const float* from = plane.charges + (first + i) * plane.columns + c;
        if (c + kLanes <= plane.columns) {
            v[i] = *reinterpret_cast<const Loose*>(from);
        } else {
            for (Index k = 0; c + k < plane.columns; ++k) v[i][k] = from[k];
        }
    }
}

inline void store_square(const Plane& plane, Index first, Index c, const Wide* v) {
    for (Index i = 0; i < kLanes && first + i < plane.rows; ++i) {
        float* to = plane.field + (first + i) * plane.columns + c;
        if (c + kLanes <= plane.columns) {
            *reinterpret_cast<Loose*>(to) = v[i];
        } else {
            for (Index k = 0; c + k < plane.columns; ++k) to[k] = v[i][k];
        }
    }
}

struct Convolution {
    Plane plane;
    Fourier across, down;  // transforms of rows and of columns
    const Twin* twins;
    Complex* waves;        // [block of 8 frequencies][row]: what lies between rows and columns
    Index rows_there;      // rows of a block, a multiple of kGroup

    // The transforms of 16 rows: rows first .. + 7 are real parts, the next 8 imaginary ones.
    void rows_forward(Index first, Complex* x) const {
        const Index w = across.n;
        Complex* odd = x + w;
        Wide re[kLanes], im[kLanes];
        for (Index c = 0; c < plane.columns; c += kLanes) {
            load_square(plane, first, c, re);
            load_square(plane, first + kLanes, c, im);
            transpose_square(re), transpose_square(im);
            for (Index k = 0; k < kLanes && c + k < w; ++k) {
                x[c + k] = {re[k], im[k]};
                odd[c + k] = turned<true>(x[c + k], across.half[c + k]);
            }
        }
        for (Index c = plane.columns; c < w; ++c) x[c] = odd[c] = Complex{};
        across.forward(x);
        across.forward(odd);
        for (Index block = 0; block < plane.blocks; ++block) {
            Wide a_re[kLanes], a_im[kLanes], b_re[kLanes], b_im[kLanes];
            for (Index k = 0; k < kLanes; ++k) {
                const Twin twin = twins[min_of(w, block * kLanes + k)];
                const Complex z = x[twin.place], back = x[twin.mirror];
                a_re[k] = z.re + back.re, a_im[k] = z.im - back.im;  // twice row a's, see `spectrum`
                b_re[k] = z.im + back.im, b_im[k] = back.re - z.re;
            }
            transpose_square(a_re), transpose_square(a_im);
            transpose_square(b_re), transpose_square(b_im);
            Complex* to = waves + block * rows_there + first;
            for (Index i = 0; i < kLanes; ++i) to[i] = {a_re[i], a_im[i]}, to[kLanes + i] = {b_re[i], b_im[i]};
        }
    }

    void rows_back(Index first, Complex* x) const {
        const Index w = across.n;
        Complex* odd = x + w;
        for (Index block = 0; block < plane.blocks; ++block) {
            Wide a_re[kLanes], a_im[kLanes], b_re[kLanes], b_im[kLanes];
            const Complex* from = waves + block * rows_there + first;
            for (Index i = 0; i < kLanes; ++i) {
                a_re[i] = from[i].re, a_im[i] = from[i].im;
                b_re[i] = from[kLanes + i].re, b_im[i] = from[kLanes + i].im;
            }
            transpose_square(a_re), transpose_square(a_im);
            transpose_square(b_re), transpose_square(b_im);
            for (Index k = 0; k < kLanes && block * kLanes + k <= w; ++k) {
                const Twin twin = twins[block * kLanes + k];
                x[twin.mirror] = {a_re[k] + b_im[k], b_re[k] - a_im[k]};
                x[twin.place] = {a_re[k] - b_im[k], b_re[k] + a_im[k]};
            }
        }
        across.back(x);
        across.back(odd);
        Wide re[kLanes], im[kLanes];
        for (Index c = 0; c < plane.columns; c += kLanes) {
            for (Index k = 0; k < kLanes; ++k) {
                const Index at = min_of(c + k, w - 1);
                const Complex sum = x[at] + turned<false>(odd[at], across.half[at]);
                re[k] = sum.re, im[k] = sum.im;
            }
            transpose_square(re), transpose_square(im);
            store_square(plane, first, c, re);
            store_square(plane, first + kLanes, c, im);
        }
    }

    // Forward, times the spectrum, and back.
    void columns(Index block, Complex* x) const {
        const Index m = down.n;
        Complex* odd = x + m;
        Complex* own = waves + block * rows_there;
        for (Index i = 0; i < plane.rows; ++i) {
            x[i] = own[i];
            odd[i] = turned<true>(own[i], down.half[i]);
        }
        for (Index i = plane.rows; i < m; ++i) x[i] = odd[i] = Complex{};
        const Loose* factor = reinterpret_cast<const Loose*>(plane.spectrum + block * 2 * m * kLanes);
        Complex* const parts[] = {x, odd};
        for (Complex* part : parts) {
            down.forward(part);
            for (Index i = 0; i < m; ++i, ++factor) part[i] = {part[i].re * *factor, part[i].im * *factor};
            down.back(part);
        }
        for (Index i = 0; i < plane.rows; ++i) own[i] = x[i] + turned<false>(odd[i], down.half[i]);
    }
};

}  // namespace

bool fourier_order(Index n, std::int32_t* frequency) {
    Fourier fourier;
    if (!fourier.factor(n)) return false;
    fourier.order(frequency);
    return true;
}

bool convolve(Plane plane, int n_threads) {
    Convolution job{plane, {}, {}, nullptr, nullptr, ceil_div(plane.rows, kGroup) * kGroup};
    if (!job.across.factor(plane.wide) || !job.down.factor(plane.high)) return false;
    const Index longest = plane.wide > plane.high ? plane.wide : plane.high;
    const Index n_groups = job.rows_there / kGroup, n_work = 2 * longest;
    Wave* tables = allocate<Wave>(job.across.n_waves() + job.down.n_waves());
    std::int32_t* places = allocate<std::int32_t>(2 * plane.wide);
    Twin* twins = allocate<Twin>(plane.wide + 1);
    Complex* waves = allocate<Complex>(plane.blocks * job.rows_there);
    Complex* work = allocate<Complex>(n_threads * n_work);
    const bool enough = tables && places && twins && waves && work;
    if (enough) {
        job.across.prepare(tables);
        job.down.prepare(tables + job.across.n_waves());
        find_twins(job.across, places, twins);
        job.twins = twins, job.waves = waves;
        parallel(n_groups, n_threads,
                 [&](Index group, int slot) { job.rows_forward(group * kGroup, work + slot * n_work); });
        parallel(plane.blocks, n_threads,
                 [&](Index block, int slot) { job.columns(block, work + slot * n_work); });
        parallel(n_groups, n_threads,
                 [&](Index group, int slot) { job.rows_back(group * kGroup, work + slot * n_work); });
    }
    std::free(tables), std::free(places), std::free(twins), std::free(waves), std::free(work);
    return enough;
}

}  // namespace LOWLAND_ISA
}  // namespace lowland
